// Whether a text is a well-formed XML element of the kind that the core writes: no prologue, comments, CDATA or references but
// character ones and the five of XML.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace kvfuzz {

class Checker {
   public:
    explicit Checker(const std::string& text) : s_(text) {}

    bool ok() {
        if (!tag()) return false;
        while (!open_.empty())
            if (!(peek() == '<' ? tag() : content())) return false;
        return at_ == s_.size();
    }

   private:
    char peek() const { return at_ < s_.size() ? s_[at_] : '\0'; }
    bool take(char c) { return peek() == c && ++at_; }

    std::string name() {
        const size_t from = at_;
        while (std::isalnum(static_cast<unsigned char>(peek())) || std::strchr("_:-.", peek() ? peek() : ' ')) ++at_;
        return s_.substr(from, at_ - from);
    }

    bool tag() {
        if (!take('<')) return false;
        if (take('/')) {
            const std::string closed = name();
            if (open_.empty() || open_.back() != closed || !take('>')) return false;
            open_.pop_back();
            return true;
        }
        const std::string opened = name();
        if (opened.empty()) return false;
        std::set<std::string> attributes;
        while (take(' ')) {
            if (!attributes.insert(name()).second || !take('=') || !take('"')) return false;
            while (peek() != '"')
                if (at_ >= s_.size() || peek() == '<' || !character()) return false;
            ++at_;
        }
        if (take('/')) return take('>');
        open_.push_back(opened);
        return take('>');
    }

    bool content() {
        while (at_ < s_.size() && peek() != '<')
            if (peek() == '>' || !character()) return false;
        return at_ < s_.size();
    }

    // One character that XML 1.0 allows, in valid UTF-8, or one reference.
    bool character() {
        const auto c = static_cast<unsigned char>(s_[at_]);
        if (c == '&') return reference();
        if (c < 0x80) return c >= 0x20 && ++at_;  // line breaks and tabs are written as references
        const size_t more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC2 || c > 0xF4 || at_ + more >= s_.size()) return false;
        uint32_t code = c & (0x3FU >> more);
        for (size_t i = 1; i <= more; ++i) {
            const auto next = static_cast<unsigned char>(s_[at_ + i]);
            if ((next & 0xC0) != 0x80) return false;
            code = code << 6 | (next & 0x3F);
        }
        at_ += more + 1;
        return !(code >= 0xD800 && code <= 0xDFFF) && code != 0xFFFE && code != 0xFFFF && code <= 0x10FFFF;
    }

    bool reference() {
        const size_t end = s_.find(';', at_);
        if (end == std::string::npos) return false;
        static const std::set<std::string> known = {"&amp", "&lt", "&gt", "&#34", "&#39", "&#x9", "&#xA", "&#xD"};
        const bool fine = known.count(s_.substr(at_, end - at_)) != 0;
        at_ = end + 1;
        return fine;
    }

    const std::string& s_;
    size_t at_ = 0;
    std::vector<std::string> open_;
};

inline bool well_formed(const std::string& text) { return Checker(text).ok(); }

}  // namespace kvfuzz
