// Field tables: one walk over a JSON object sorts its members into a struct, one slot a field.
//
// A struct of the API is declared once, KV_FIELDS(Cpu, cores, sockets, threads): it makes the struct, whose members are all
// Value, and the names to find them by. Looking a name up is one hash, made free of collisions when the table is built, and
// one comparison; a field that the object lacks costs nothing. Of duplicate members the last wins, as in encoding/json.
#pragma once
#include "tape.hpp"

namespace kv {

class Table {
   public:
    // `names`: "cores, sockets, threads". A trailing underscore is dropped: namespace_ is C++'s word, namespace the field's.
    explicit Table(const char* names) {
        names_[kFields].size = SIZE_MAX;
        for (const char* p = names; *p;) {
            while (*p == ',' || *p == ' ') ++p;
            const char* start = p;
            while (*p && *p != ',' && *p != ' ') ++p;
            if (p == start) break;
            size_t size = static_cast<size_t>(p - start);
            if (start[size - 1] == '_') --size;
            if (count_ == kFields) __builtin_trap();
            names_[count_++] = {start, size};
        }
        for (seed_ = 1; !settle(); seed_ += 2) {}
    }

    // The name's place among those of the table, or -1.
    int find(Text name) const {
        const uint8_t slot = slots_[hash(name)];
        return same(names_[slot], name) ? slot : -1;
    }

   private:
    static constexpr int kFields = 63, kSlots = 256;  // a table holds no more fields than that

    uint32_t hash(Text name) const {
        if (name.size == 0) return 0;
        const auto* s = reinterpret_cast<const uint8_t*>(name.data);
        const uint32_t mixed = static_cast<uint32_t>(name.size) + s[0] * 31U + s[name.size - 1] * 1021U + s[name.size / 2] * 32749U;
        return (mixed * seed_ >> 16) & (kSlots - 1);
    }

    bool settle() {
        std::memset(slots_, kFields, sizeof slots_);
        for (int i = 0; i < count_; ++i) {
            uint8_t& slot = slots_[hash(names_[i])];
            if (slot != kFields) {
                // Names that the hash cannot tell apart would be searched for ever: spoil the build loudly instead.
                if (seed_ > 2000001U) __builtin_trap();
                return false;
            }
            slot = static_cast<uint8_t>(i);
        }
        return true;
    }

    Text names_[kFields + 1] = {};  // and one that equals no name, for the slots that are free
    uint8_t slots_[kSlots];
    int count_ = 0;
    uint32_t seed_ = 1;
};

template <int N>
inline void clear_slots(Value* slots) {
    for (int i = 0; i < N; ++i) slots[i] = {};
}

// Members without a field are passed over. `slots`: one a field, absent all of them.
inline void fill(Value object, const Table& table, Value* slots) {
    for (Members it = members(object); next(it);) {
        const int slot = table.find(it.name);
        if (slot >= 0) slots[slot] = it.value;
    }
}

}  // namespace kv

#define KV_FIELDS(Name, ...)                                  \
    struct Name {                                             \
        Value __VA_ARGS__;                                    \
        static const Table& table() {                         \
            static const Table made(#__VA_ARGS__);            \
            return made;                                      \
        }                                                     \
    }
