// Finding things by name: volumes, statuses, context entries. Small sets are searched, large ones hashed, so that ten thousand
// disks cost ten thousand look-ups and no more. The memory is kept from one conversion to the next.
#pragma once
#include <random>
#include <vector>

#include "tape.hpp"

namespace kv {

class Names {
   public:
    void clear() {
        if (entries_.size() > kKept) {  // room for a huge VMI is given back
            entries_ = {};
            buckets_ = {};
        }
        entries_.clear();
        hashed_ = false;
        gists_ = 0;
    }

    // Adds a name, or gives it a new value.
    void put(Text name, Value value, uint32_t index) {
        Entry* known = find(name);
        if (known) {
            known->value = value;
            known->index = index;
            return;
        }
        entries_.push_back({name, value, index});
        gists_ |= gist(name);
        if (hashed_) {
            if (entries_.size() * 2 > buckets_.size()) rehash();
            else insert(static_cast<uint32_t>(entries_.size()));
        } else if (entries_.size() > kSmall) {
            rehash();
        }
    }

    bool has(Text name) const { return find(name) != nullptr; }

    Value get(Text name) const {
        const Entry* e = find(name);
        return e ? e->value : Value{};
    }

    // The index given with the name, or -1.
    int64_t index(Text name) const {
        const Entry* e = find(name);
        return e ? static_cast<int64_t>(e->index) : -1;
    }

    size_t size() const { return entries_.size(); }

   private:
    struct Entry {
        Text name;
        Value value;
        uint32_t index;
    };
    static constexpr size_t kSmall = 12;
    static constexpr size_t kKept = 512;

    // One bit a name: most names that are not there are told apart by it, without a look at the entries.
    static uint64_t gist(Text name) {
        return uint64_t{1} << ((name.size ? static_cast<uint8_t>(name.data[0]) + name.size * 7 : 0) & 63);
    }

    Entry* find(Text name) { return gists_ & gist(name) ? locate(name) : nullptr; }
    const Entry* find(Text name) const { return const_cast<Names*>(this)->find(name); }

    static uint64_t hash(Text name) {  // FNV-1a, from a start that nobody can choose names against
        static const uint64_t start = std::random_device{}() * 0x9E3779B97F4A7C15ULL;
        uint64_t h = 1469598103934665603ULL ^ start;
        for (size_t i = 0; i < name.size; ++i) h = (h ^ static_cast<uint8_t>(name.data[i])) * 1099511628211ULL;
        return h ^ (h >> 29);
    }

    Entry* locate(Text name) {
        if (!hashed_) {
            for (Entry& e : entries_)
                if (same(e.name, name)) return &e;
            return nullptr;
        }
        const size_t mask = buckets_.size() - 1;
        for (size_t b = hash(name) & mask; buckets_[b] != 0; b = (b + 1) & mask) {
            Entry& e = entries_[buckets_[b] - 1];
            if (same(e.name, name)) return &e;
        }
        return nullptr;
    }

    void insert(uint32_t number) {
        const size_t mask = buckets_.size() - 1;
        size_t b = hash(entries_[number - 1].name) & mask;
        while (buckets_[b] != 0) b = (b + 1) & mask;
        buckets_[b] = number;
    }

    void rehash() {
        size_t wanted = 64;
        while (wanted < entries_.size() * 4) wanted *= 2;
        buckets_.assign(wanted, 0);
        for (uint32_t i = 1; i <= entries_.size(); ++i) insert(i);
        hashed_ = true;
    }

    std::vector<Entry> entries_;
    std::vector<uint32_t> buckets_;
    uint64_t gists_ = 0;
    bool hashed_ = false;
};

// The members of an object by their names.
inline void index_members(Names& names, Value object) {
    names.clear();
    uint32_t i = 0;
    for (Members it = members(object); next(it);) names.put(it.name, it.value, i++);
}

}  // namespace kv
