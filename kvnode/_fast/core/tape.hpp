// A parsed JSON document, read in place.
//
// simdjson leaves a document as two flat arrays: the tape (one or two 64-bit words a value) and the strings.
// Value is a place on the tape. Nothing here allocates, throws or touches Python, so all of it runs without the GIL.
// Tape layout: https://github.com/simdjson/simdjson/blob/v3.0.1/doc/tape.md
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kv {

// A run of bytes that belongs to somebody else. Absent: data is null.
struct Text {
    const char* data = nullptr;
    size_t size = 0;
    explicit operator bool() const { return data != nullptr && size != 0; }
};

inline Text text_of(const char* s) { return {s, __builtin_strlen(s)}; }

template <class Word>
inline bool same_ends(const char* a, const char* b, size_t n) {
    Word a0, a1, b0, b1;
    std::memcpy(&a0, a, sizeof(Word));
    std::memcpy(&b0, b, sizeof(Word));
    std::memcpy(&a1, a + n - sizeof(Word), sizeof(Word));
    std::memcpy(&b1, b + n - sizeof(Word), sizeof(Word));
    return ((a0 ^ b0) | (a1 ^ b1)) == 0;
}

// memcmp() == 0 for short names: two overlapping loads a side instead of a call.
inline bool same_bytes(const char* a, const char* b, size_t n) {
    if (n >= 8) return n <= 16 ? same_ends<uint64_t>(a, b, n) : std::memcmp(a, b, n) == 0;
    if (n >= 4) return same_ends<uint32_t>(a, b, n);
    if (n >= 2) return same_ends<uint16_t>(a, b, n);
    return n == 0 || *a == *b;
}

inline bool same(Text a, Text b) { return a.size == b.size && same_bytes(a.data, b.data, a.size); }

inline bool same(Text a, const char* b) { return same(a, text_of(b)); }

struct Document {
    const uint64_t* tape = nullptr;
    const uint8_t* strings = nullptr;
};

// One JSON value; `at` is null when the value is absent or JSON null.
struct Value {
    const uint64_t* at = nullptr;
    const Document* doc = nullptr;
};

inline char kind(Value v) { return v.at ? static_cast<char>(*v.at >> 56) : '\0'; }
inline bool present(Value v) { return v.at != nullptr; }
inline uint64_t payload(const uint64_t* at) { return *at & 0x00FFFFFFFFFFFFFFULL; }

inline Text string_at(const Document* doc, const uint64_t* at) {
    const uint8_t* s = doc->strings + payload(at);
    uint32_t size;
    std::memcpy(&size, s, sizeof size);
    return {reinterpret_cast<const char*>(s + sizeof size), size};
}

// The string itself; absent when the value is no string.
inline Text text(Value v) { return kind(v) == '"' ? string_at(v.doc, v.at) : Text{}; }

// The place behind a value: objects and arrays carry the index of theirs.
inline const uint64_t* after(const Document* doc, const uint64_t* at) {
    switch (static_cast<char>(*at >> 56)) {
        case '{':
        case '[': return doc->tape + static_cast<uint32_t>(*at);
        case 'l':
        case 'u':
        case 'd': return at + 2;
        default: return at + 1;
    }
}

inline Value value_at(const Document* doc, const uint64_t* at) {
    return static_cast<char>(*at >> 56) == 'n' ? Value{} : Value{at, doc};
}

inline Value root(const Document* doc) { return value_at(doc, doc->tape + 1); }

// How many elements or members; simdjson saturates the count at 0xFFFFFF, so only a hint.
inline uint32_t size_hint(Value v) {
    const char k = kind(v);
    return k == '[' || k == '{' ? static_cast<uint32_t>((*v.at >> 32) & 0xFFFFFF) : 0;
}

// Walks the elements of an array: for (Items it = items(v); next(it);) use it.value. JSON null elements are absent values.
struct Items {
    const uint64_t* at = nullptr;
    const uint64_t* end = nullptr;
    const Document* doc = nullptr;
    Value value;
    const uint64_t* raw = nullptr;  // the element's place, also when it is null
};

inline Items items(Value v) {
    if (kind(v) != '[') return {};
    return {v.at + 1, v.doc->tape + static_cast<uint32_t>(*v.at) - 1, v.doc, {}, nullptr};
}

inline bool next(Items& it) {
    if (it.at == it.end) return false;
    it.raw = it.at;
    it.value = value_at(it.doc, it.at);
    it.at = after(it.doc, it.at);
    return true;
}

// Walks the members of an object in the order written.
struct Members {
    const uint64_t* at = nullptr;
    const uint64_t* end = nullptr;
    const Document* doc = nullptr;
    Text name;
    Value value;
};

inline Members members(Value v) {
    if (kind(v) != '{') return {};
    return {v.at + 1, v.doc->tape + static_cast<uint32_t>(*v.at) - 1, v.doc, {}, {}};
}

inline bool next(Members& it) {
    if (it.at == it.end) return false;
    it.name = string_at(it.doc, it.at);
    it.value = value_at(it.doc, it.at + 1);
    it.at = after(it.doc, it.at + 1);
    return true;
}

// One member by name, by a walk over all: for maps that are asked once (annotations, labels). The last of equal names wins.
inline Value member(Value v, Text name) {
    Value found;
    for (Members it = members(v); next(it);)
        if (same(it.name, name)) found = it.value;
    return found;
}

inline Value member(Value v, const char* name) { return member(v, text_of(name)); }

}  // namespace kv
