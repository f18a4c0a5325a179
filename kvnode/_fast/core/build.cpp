#include "build.hpp"

#include <charconv>

namespace kv {

namespace {

Amount amount_of(Value v, bool milli) {
    char digits[32];
    switch (kind(v)) {
        case '"': return parse_quantity(string_at(v.doc, v.at), milli);
        case 'l':
        case 'u': {
            const auto done = kind(v) == 'l' ? std::to_chars(digits, digits + sizeof digits, static_cast<int64_t>(v.at[1]))
                                             : std::to_chars(digits, digits + sizeof digits, v.at[1]);
            return parse_quantity({digits, static_cast<size_t>(done.ptr - digits)}, milli);
        }
        case 'd': {
            double d;
            std::memcpy(&d, v.at + 1, sizeof d);
            const auto done = std::to_chars(digits, digits + sizeof digits, d);
            return parse_quantity({digits, static_cast<size_t>(done.ptr - digits)}, milli);
        }
        default: return {};
    }
}

constexpr const char* kNoQuantity = "must be a quantity such as 1536Mi or 2Gi";

}  // namespace

int64_t quantity_or(Build& b, Value v, int64_t otherwise) {
    if (!v.at) return otherwise;
    const Amount amount = amount_of(v, false);
    if (amount.ok) return amount.value;
    reject(b, v, kNoQuantity);
    return otherwise;
}

uint64_t memory_or(Build& b, Value v, uint64_t otherwise) {
    if (!v.at) return otherwise;
    const Amount amount = amount_of(v, false);
    const int64_t bytes = amount.exact ? amount.value : amount.value - 1;
    if (amount.ok && bytes >= 0) return static_cast<uint64_t>(bytes);
    reject(b, v, amount.ok ? "must not be negative" : kNoQuantity);
    return otherwise;
}

bool same_quantity(Build& b, Value one, Value other) {
    return quantity_or(b, one, 0) == quantity_or(b, other, 0) && amount_of(one, true).value == amount_of(other, true).value;
}

namespace {

// Appends the way to `wanted` from the container at `at`; true when it was inside.
bool descend(const Document* doc, const uint64_t* at, const uint64_t* wanted, std::string& path) {
    while (at != wanted) {
        const Value here{at, doc};
        const uint64_t* inside = nullptr;
        if (kind(here) == '{') {
            for (Members it = members(here); !inside && it.at != it.end;) {
                const uint64_t* child = it.at + 1;
                next(it);
                if (wanted >= child && wanted < it.at) {
                    if (!path.empty()) path += '.';
                    path.append(it.name.data, it.name.size);
                    inside = child;
                }
            }
        } else if (kind(here) == '[') {
            size_t index = 0;
            for (Items it = items(here); !inside && next(it); ++index) {
                if (wanted >= it.raw && wanted < it.at) {
                    path += '[' + std::to_string(index) + ']';
                    inside = it.raw;
                }
            }
        }
        if (!inside) return false;
        at = inside;
    }
    return true;
}

// Field names come from the input: what a terminal or a log should not see is replaced.
void make_plain(std::string& s, size_t longest) {
    for (char& c : s)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    if (s.size() > longest) {
        size_t cut = longest;
        while (cut > 0 && (static_cast<unsigned char>(s[cut]) & 0xC0) == 0x80) --cut;
        s.resize(cut);
        s += "...";
    }
}

}  // namespace

std::string path_of(Value v) {
    std::string path;
    if (v.at && !descend(v.doc, v.doc->tape + 1, v.at, path)) path.clear();
    make_plain(path, 500);
    return path;
}

std::string error_field(const Build& b) {
    std::string path = path_of(b.error.at);
    if (b.ctx && b.error.at.doc == &b.ctx->parser.document()) path = path.empty() ? "context" : "context." + path;
    if (*b.error.field) {
        if (!path.empty()) path += '.';
        path += b.error.field;
    }
    return path;
}

std::string error_message(const Build& b) {
    std::string message = b.error.what;
    if (!b.error.detail.empty()) {
        std::string detail = b.error.detail;
        make_plain(detail, 120);
        message += " " + detail;
    }
    return message;
}

}  // namespace kv
