// JSON bytes to a Document, by simdjson. The buffers are kept for the next document, up to a bound.
#pragma once
#include <memory>

#include "tape.hpp"

namespace kv {

class Parser {
   public:
    Parser();
    ~Parser();
    // Returns null, or what is wrong with the text, in words that outlive the parser.
    const char* parse(const char* json, size_t size);
    const Document& document() const { return document_; }
    // Keeps the document alone, in as little memory as it takes: for one that stays. Values found before are void.
    void keep();
    // Has the processor fetch a document that was kept, up to a bound.
    void fetch() const {
        const char* from = reinterpret_cast<const char*>(kept_.get());
        for (size_t i = 0; i < kept_size_ && i < 4096; i += 64) __builtin_prefetch(from + i);
    }

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    std::unique_ptr<uint64_t[]> kept_;
    size_t kept_size_ = 0;  // in bytes
    Document document_;
};

}  // namespace kv
