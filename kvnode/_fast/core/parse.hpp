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

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    Document document_;
};

}  // namespace kv
