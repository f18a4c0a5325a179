#include "writer.hpp"

namespace kv {

void grow(Writer& w, size_t more) {
    size_t wanted = w.room ? w.room * 2 : 8192;
    while (wanted - w.size < more) wanted *= 2;
    void* moved = std::realloc(w.data, wanted);
    if (moved) {
        w.data = static_cast<char*>(moved);
        w.room = wanted;
        return;
    }
    // Out of memory: start over in the room there is, and say so at the end. Without that much room there is no going on.
    w.failed = true;
    w.size = 0;
    if (w.room < more) std::abort();
}

namespace {

// 0: as it is; 1: has an escape; 2: may start something that XML cannot carry
struct Classes {
    uint8_t of[256];
    constexpr Classes() : of{} {
        for (int c = 0; c < 0x20; ++c) of[c] = 2;
        of['\t'] = of['\n'] = of['\r'] = 1;
        of['&'] = of['<'] = of['>'] = of['"'] = 1;
        of[0xED] = of[0xEF] = 2;  // surrogates U+D800..DFFF, U+FFFE and U+FFFF
    }
};
constexpr Classes kClasses;

const char* escape_of(char c) {
    switch (c) {
        case '&': return "&amp;";
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '"': return "&#34;";
        case '\t': return "&#x9;";
        case '\n': return "&#xA;";
        default: return "&#xD;";
    }
}

bool carried(const uint8_t* s, const uint8_t* end) {
    if (s[0] == 0xED) return !(s + 1 < end && s[1] >= 0xA0);
    if (s[0] == 0xEF) return !(s + 2 < end && s[1] == 0xBF && s[2] >= 0xBE);
    return false;
}

using Block = uint8_t __attribute__((vector_size(16)));

// Whether any of 16 bytes is not of class 0.
inline bool any_special(Block c) {
    const auto met = (c < 0x20) | (c == '&') | (c == '<') | (c == '>') | (c == '"') | (c == 0xED) | (c == 0xEF);
    uint64_t halves[2];
    std::memcpy(halves, &met, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

// Copies n bytes, by their first and last Word, which may overlap; none when one of them is special. Answers how many.
template <class Word>
inline size_t copy_ends(char* out, const char* s, size_t n) {
    Word ends[sizeof(Block) / sizeof(Word)] = {};
    std::memset(ends, '0', sizeof ends);
    std::memcpy(&ends[0], s, sizeof(Word));
    std::memcpy(&ends[1], s + n - sizeof(Word), sizeof(Word));
    Block block;
    std::memcpy(&block, ends, sizeof block);
    if (any_special(block)) return 0;
    std::memcpy(out, &ends[0], sizeof(Word));
    std::memcpy(out + n - sizeof(Word), &ends[1], sizeof(Word));
    return n;
}

// Copies text up to a block with a special byte in it. Answers how many bytes.
inline size_t copy_plain(char* out, const char* s, size_t n) {
    if (n < 4) return 0;
    if (n < 8) return copy_ends<uint32_t>(out, s, n);
    if (n < sizeof(Block)) return copy_ends<uint64_t>(out, s, n);
    for (size_t i = 0;; i = i + 2 * sizeof(Block) <= n ? i + sizeof(Block) : n - sizeof(Block)) {
        Block block;
        std::memcpy(&block, s + i, sizeof block);
        if (any_special(block)) return i;
        std::memcpy(out + i, &block, sizeof block);
        if (i + sizeof(Block) == n) return n;
    }
}

}  // namespace

void put_escaped(Writer& w, Text text) {
    const auto* s = reinterpret_cast<const uint8_t*>(text.data);
    const uint8_t* const end = s + text.size;
    char* out = reserve(w, text.size + 6);
    const size_t plain = copy_plain(out, text.data, text.size);
    s += plain;
    out += plain;
    while (s != end) {
        while (s != end && kClasses.of[*s] == 0) *out++ = static_cast<char>(*s++);
        if (s == end) break;
        if (kClasses.of[*s] == 1) {
            const char* escape = escape_of(static_cast<char>(*s++));
            const size_t n = std::strlen(escape);
            std::memcpy(out, escape, n);
            out += n;
        } else {
            if (!carried(s, end) && !w.invalid) {
                w.invalid = true;
                w.bad = w.source;
            }
            *out++ = static_cast<char>(*s++);
        }
        w.size = static_cast<size_t>(out - w.data);
        out = reserve(w, static_cast<size_t>(end - s) + 6);
    }
    w.size = static_cast<size_t>(out - w.data);
}

}  // namespace kv
