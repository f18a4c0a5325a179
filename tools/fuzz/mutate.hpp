// Changes to JSON that keep it JSON most of the time: whole values and members are swapped, doubled, dropped, replaced.
#pragma once
#include <cstring>
#include <random>
#include <string>
#include <vector>

// libFuzzer's own mutator, where there is libFuzzer.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace kvfuzz {

struct Span {
    size_t from = 0, to = 0;
};

// Finds the values of a text that may be no JSON at all, and the members and elements around them.
class Values {
   public:
    explicit Values(const std::string& text) : s_(text) {
        while (at_ < s_.size()) {
            const size_t before = at_;
            value(0);
            if (at_ == before) ++at_;
        }
    }
    std::vector<Span> values;  // each a whole value
    std::vector<Span> parts;   // each a member or an element, without its comma

   private:
    void space() {
        while (at_ < s_.size() && std::strchr(" \t\r\n", s_[at_])) ++at_;
    }

    void string() {
        for (++at_; at_ < s_.size() && s_[at_] != '"'; ++at_)
            if (s_[at_] == '\\') ++at_;
        at_ = std::min(at_ + 1, s_.size());
    }

    void container(int depth) {
        for (++at_; at_ < s_.size() && s_[at_] != '}' && s_[at_] != ']';) {
            const size_t from = at_;
            space();
            value(depth + 1);
            space();
            if (at_ < s_.size() && s_[at_] == ':') {
                ++at_;
                values.pop_back();  // it was a name
                value(depth + 1);
                space();
            }
            if (at_ > from) parts.push_back({from, at_});
            if (at_ < s_.size() && s_[at_] == ',') ++at_;
            else if (at_ == from) ++at_;
        }
        at_ = std::min(at_ + 1, s_.size());
    }

    void value(int depth) {
        space();
        const size_t from = at_;
        const char c = at_ < s_.size() ? s_[at_] : '\0';
        if ((c == '{' || c == '[') && depth < 200) container(depth);
        else if (c == '"') string();
        else
            while (at_ < s_.size() && !std::strchr(",:]}\n", s_[at_])) ++at_;
        values.push_back({from, at_});
    }

    const std::string& s_;
    size_t at_ = 0;
};

inline const std::vector<std::string>& odd_values() {
    static const std::vector<std::string> odd = {
        "null", "true", "false", "0", "1", "-1", "2", "16384", "65536", "4294967295", "4294967296", "9223372036854775807",
        "-9223372036854775808", "18446744073709551615", "1e308", "-0.0", "1.5", "[]", "{}", "[{}]", "[null]", "\"\"", "\"/\"",
        "\"..\"", "\"<&>\\\"'\"", "\"\\u0000\"", "\"\\u0001\"", "\"\\ufffe\"", "\"\\ud83d\\ude00\"", "\"\xed\x9f\xbf\"",
        "\"\xef\xbf\xbd\"", "\"\\t\\n\\r\"", "\"1Gi\"", "\"1E\"", "\"-1\"", "\"1e30\"", "\"9223372036854775807\"", "\"0.5\"",
        "\"1.0000000000000000001Ki\"", "\"0000:81:11.1\"", "\"0-3,^1\"", "\"virtio\"", "\"scsi\"", "\"sata\"", "\"usb\"", "\"auto\"",
        "\"shared\"", "\"supplementalPool\"", "\"amd64\"", "\"arm64\"", "\"s390x\"", "\"sda\"", "\"vdzzz\"", "\"true\"",
    };
    return odd;
}

class Mutator {
   public:
    Mutator(std::string text, unsigned seed) : s_(std::move(text)), random_(seed) {}

    std::string changed() {
        for (unsigned n = 1 + pick(4); n > 0; --n) step();
        return s_;
    }

   private:
    unsigned pick(size_t n) { return static_cast<unsigned>(random_() % (n ? n : 1)); }
    std::string at(Span p) const { return s_.substr(p.from, p.to - p.from); }
    void put(Span p, const std::string& text) { s_.replace(p.from, p.to - p.from, text); }

    void step() {
        const Values found(s_);
        if (found.values.empty()) return;
        const Span value = found.values[pick(found.values.size())];
        const Span other = found.values[pick(found.values.size())];
        const Span part = found.parts.empty() ? value : found.parts[pick(found.parts.size())];
        const Span another = found.parts.empty() ? value : found.parts[pick(found.parts.size())];
        switch (pick(9)) {
            case 0: return put(value, odd_values()[pick(odd_values().size())]);
            case 1: return put(value, at(other));
            case 2: return put(part, at(another));
            case 3: return put(part, at(part) + "," + at(another));
            case 4: return put(part, at(part) + "," + at(part));
            case 5: return drop(part);
            case 6: return put(value, "\"" + std::string(pick(300), static_cast<char>('a' + pick(26))) + "\"");
            case 7: return repeat(part);
            default: return flip(value);
        }
    }

    void drop(Span part) {
        if (part.to < s_.size() && s_[part.to] == ',') ++part.to;
        else if (part.from > 0 && s_[part.from - 1] == ',') --part.from;
        put(part, "");
    }

    void repeat(Span part) {
        const std::string one = at(part);
        std::string many = one;
        for (unsigned n = pick(40); n > 0 && many.size() < 20000; --n) many += "," + one;
        put(part, many);
    }

    void flip(Span value) {
        if (value.to > value.from) s_[value.from + pick(value.to - value.from)] = static_cast<char>(random_());
    }

    std::string s_;
    std::minstd_rand random_;
};

inline size_t mutate(uint8_t* data, size_t size, size_t most, unsigned seed) {
    if (LLVMFuzzerMutate && seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);
    std::string text = Mutator(std::string(reinterpret_cast<char*>(data), size), seed + 1).changed();
    if (text.size() > most) text.resize(most);
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

}  // namespace kvfuzz
