// One growing buffer of XML. Elements close themselves as <x/> when nothing came between start and end.
//
// Names and constants are C literals, written as they are. Text from a manifest is escaped; a character that XML 1.0 cannot
// carry (https://www.w3.org/TR/xml/#charsets) is remembered in `bad` with the value it stood in, and told once at the end.
#pragma once
#include <cstdlib>

#include "tape.hpp"

namespace kv {

struct Writer {
    char* data = nullptr;
    size_t size = 0;
    size_t room = 0;
    bool in_tag = false;  // the start tag at the end of the buffer still takes attributes
    bool failed = false;  // out of memory: what is written is lost
    bool invalid = false; // a character that XML cannot carry was met, the first in `bad`
    Value bad;
    Value source;         // the value that the text now being escaped came from

    Writer() = default;
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { std::free(data); }
};

void grow(Writer& w, size_t more);
void put_escaped(Writer& w, Text s);

inline void reset(Writer& w) {
    w.size = 0;
    w.in_tag = w.failed = w.invalid = false;
    w.bad = w.source = {};
}

inline char* reserve(Writer& w, size_t more) {
    if (__builtin_expect(w.room - w.size < more, 0)) grow(w, more);
    return w.data + w.size;
}

__attribute__((always_inline)) inline void put(Writer& w, const char* s, size_t n) {
    std::memcpy(reserve(w, n), s, n);
    w.size += n;
}

// A literal, as it stands. The length is known when compiled.
__attribute__((always_inline)) inline void lit(Writer& w, const char* s) { put(w, s, __builtin_strlen(s)); }

inline void put_uint(Writer& w, uint64_t n) {
    char* out = reserve(w, 20);
    size_t i = 1;
    for (uint64_t rest = n; rest >= 10; rest /= 10) ++i;
    w.size += i;
    do out[--i] = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
}

inline void put_int(Writer& w, int64_t n) {
    if (n < 0) lit(w, "-");
    put_uint(w, n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n));
}

inline void close_tag(Writer& w) {
    if (w.in_tag) {
        lit(w, ">");
        w.in_tag = false;
    }
}

// <name
__attribute__((always_inline)) inline void start(Writer& w, const char* name) {
    close_tag(w);
    lit(w, "<");
    lit(w, name);
    w.in_tag = true;
}

// /> or </name>
__attribute__((always_inline)) inline void end(Writer& w, const char* name) {
    if (w.in_tag) {
        lit(w, "/>");
        w.in_tag = false;
        return;
    }
    lit(w, "</");
    lit(w, name);
    lit(w, ">");
}

// name="literal"
__attribute__((always_inline)) inline void attr(Writer& w, const char* name, const char* literal) {
    lit(w, " ");
    lit(w, name);
    lit(w, "=\"");
    lit(w, literal);
    lit(w, "\"");
}

// name="text of the manifest", escaped
__attribute__((always_inline)) inline void attr(Writer& w, const char* name, Value v) {
    lit(w, " ");
    lit(w, name);
    lit(w, "=\"");
    w.source = v;
    put_escaped(w, text(v));
    lit(w, "\"");
}

__attribute__((always_inline)) inline void attr_text(Writer& w, const char* name, Text s) {
    lit(w, " ");
    lit(w, name);
    lit(w, "=\"");
    put_escaped(w, s);
    lit(w, "\"");
}

__attribute__((always_inline)) inline void attr_uint(Writer& w, const char* name, uint64_t n) {
    lit(w, " ");
    lit(w, name);
    lit(w, "=\"");
    put_uint(w, n);
    lit(w, "\"");
}

// An attribute whose value is put together from pieces: attr_open, then put_* and content, then attr_close.
__attribute__((always_inline)) inline void attr_open(Writer& w, const char* name) {
    lit(w, " ");
    lit(w, name);
    lit(w, "=\"");
}

inline void attr_close(Writer& w) { lit(w, "\""); }

// Escaped text of the manifest, inside an attribute or an element.
inline void put_value(Writer& w, Value v) {
    w.source = v;
    put_escaped(w, text(v));
}

// <name>literal</name> and its kin
__attribute__((always_inline)) inline void element(Writer& w, const char* name, const char* literal) {
    start(w, name);
    close_tag(w);
    lit(w, literal);
    end(w, name);
}

__attribute__((always_inline)) inline void element(Writer& w, const char* name, Value v) {
    start(w, name);
    close_tag(w);
    put_value(w, v);
    end(w, name);
}

__attribute__((always_inline)) inline void element_uint(Writer& w, const char* name, uint64_t n) {
    start(w, name);
    close_tag(w);
    put_uint(w, n);
    end(w, name);
}

}  // namespace kv
