#include "parse.hpp"

#include <simdjson.h>

namespace kv {

namespace {

constexpr size_t kLongest = 64U << 20;  // bytes of JSON: etcd keeps objects of 1.5 MiB, so this is room to spare
constexpr size_t kDepth = 128;          // levels; a VMI has a dozen
constexpr size_t kKept = 1U << 20;      // a buffer larger than this is given back after its document

const char* words(simdjson::error_code error) {
    switch (error) {
        case simdjson::EMPTY: return "is empty: expected a JSON object";
        case simdjson::DEPTH_ERROR: return "is nested deeper than 128 levels";
        case simdjson::UTF8_ERROR: return "is not valid UTF-8";
        case simdjson::STRING_ERROR: return "has a string with a bad escape or a lone surrogate";
        case simdjson::UNESCAPED_CHARS: return "has a string with a bare control character";
        case simdjson::UNCLOSED_STRING: return "ends inside a string";
        case simdjson::NUMBER_ERROR: return "has a number that JSON does not allow or that no 64-bit number can hold";
        case simdjson::MEMALLOC: return "is too large for the memory there is";
        case simdjson::CAPACITY: return "is longer than 64 MiB";
        default: return "is not valid JSON";
    }
}

}  // namespace

struct Parser::Impl {
    simdjson::dom::parser parser{kLongest};
    std::unique_ptr<char[]> text;
    size_t room = 0;
};

Parser::Parser() : impl_(new Impl) {}
Parser::~Parser() = default;

const char* Parser::parse(const char* json, size_t size) {
    document_ = {};
    if (size == 0) return words(simdjson::EMPTY);
    if (size > kLongest) return words(simdjson::CAPACITY);
    Impl& m = *impl_;
    if (m.room > kKept && size <= kKept) {
        m.text.reset();
        m.room = 0;
        m.parser = simdjson::dom::parser{kLongest};
    }
    if (m.room < size) {
        const size_t wanted = size < 4096 ? 4096 : size + size / 4;
        m.text.reset(new (std::nothrow) char[wanted + simdjson::SIMDJSON_PADDING]);
        m.room = m.text ? wanted : 0;
        if (!m.text) return words(simdjson::MEMALLOC);
        if (auto error = m.parser.allocate(wanted, kDepth)) return words(error);
    }
    std::memcpy(m.text.get(), json, size);
    std::memset(m.text.get() + size, 0, simdjson::SIMDJSON_PADDING);
    if (auto error = m.parser.parse(reinterpret_cast<const uint8_t*>(m.text.get()), size, false).error()) return words(error);
    document_ = {m.parser.doc.tape.get(), m.parser.doc.string_buf.get()};
    return nullptr;
}

void Parser::keep() {
    const uint64_t* const end = document_.tape + payload(document_.tape);  // the first word tells the number of words
    size_t strings = 0;
    for (const uint64_t* at = document_.tape + 1; at < end; ++at) {
        const char k = kind({at, &document_});
        if (k == '"') strings = payload(at) + sizeof(uint32_t) + string_at(&document_, at).size;
        if (k == 'l' || k == 'u' || k == 'd') ++at;
    }
    const auto words = static_cast<size_t>(end - document_.tape);
    const size_t room = (strings + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    std::unique_ptr<uint64_t[]> kept(new uint64_t[words + room]);
    std::memcpy(kept.get(), document_.tape, words * sizeof(uint64_t));
    std::memcpy(kept.get() + words, document_.strings, strings);
    kept_ = std::move(kept);
    kept_size_ = (words + room) * sizeof(uint64_t);
    document_ = {kept_.get(), reinterpret_cast<const uint8_t*>(kept_.get() + words)};
    impl_.reset(new Impl);
}

}  // namespace kv
