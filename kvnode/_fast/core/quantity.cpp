#include "quantity.hpp"

namespace kv {

namespace {

struct Scale {
    int tens = 0;  // powers of ten
    int twos = 0;  // powers of two
    bool ok = false;
};

// Whether the reference keeps the number as int64 and a power of ten, and that is whole: quantity.go, ParseQuantity and AsInt64.
bool is_exact(Scale scale, int whole_digits, int fraction_digits, bool fits) {
    if (scale.twos > 0) return fraction_digits == 0 && 15 - whole_digits - scale.twos * 3 / 10 - 1 >= 0;
    const int shift = scale.tens - fraction_digits;
    return 18 - (whole_digits + fraction_digits) >= 0 && shift >= 0 && fits;
}

bool exponent_of(Text s, int& out) {
    size_t i = 1;
    bool minus = false;
    if (i < s.size && (s.data[i] == '+' || s.data[i] == '-')) minus = s.data[i++] == '-';
    if (i == s.size) return false;
    int n = 0;
    for (; i < s.size; ++i) {
        if (s.data[i] < '0' || s.data[i] > '9') return false;
        if (n < 100000) n = n * 10 + (s.data[i] - '0');
    }
    out = minus ? -n : n;
    return true;
}

Scale scale_of(Text s) {
    if (s.size == 0) return {0, 0, true};
    if (s.size == 1) {
        switch (s.data[0]) {
            case 'n': return {-9, 0, true};
            case 'u': return {-6, 0, true};
            case 'm': return {-3, 0, true};
            case 'k': return {3, 0, true};
            case 'M': return {6, 0, true};
            case 'G': return {9, 0, true};
            case 'T': return {12, 0, true};
            case 'P': return {15, 0, true};
            case 'E': return {18, 0, true};
            default: return {};
        }
    }
    if (s.size == 2 && s.data[1] == 'i') {
        static const char kBinary[] = "KMGTPE";
        const void* at = std::memchr(kBinary, s.data[0], 6);
        if (!at) return {};
        return {0, 10 * static_cast<int>(static_cast<const char*>(at) - kBinary + 1), true};
    }
    int e = 0;
    if ((s.data[0] == 'e' || s.data[0] == 'E') && exponent_of(s, e)) return {e, 0, true};
    return {};
}

using Wide = unsigned __int128;
constexpr Wide kCap = static_cast<Wide>(1) << 100;

}  // namespace

Amount parse_quantity(Text s, bool milli) {
    size_t i = 0;
    bool minus = false;
    if (i < s.size && (s.data[i] == '+' || s.data[i] == '-')) minus = s.data[i++] == '-';
    Wide mantissa = 0;
    bool sticky = false, huge = false, dot = false;
    size_t digits = 0;
    int whole = 0, fraction = 0;  // significant digits before the point, all digits behind it
    int tens = milli ? 3 : 0;
    for (; i < s.size; ++i) {
        const char c = s.data[i];
        if (c == '.' && !dot) {
            dot = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        ++digits;
        if (dot) fraction += fraction < 100;
        else if (c != '0' || whole > 0) whole += whole < 100;
        if (dot && mantissa >= kCap / 10) {  // digits too small to matter but for the rounding
            sticky |= c != '0';
            continue;
        }
        if (mantissa >= kCap) huge = true;
        else mantissa = mantissa * 10 + static_cast<unsigned>(c - '0');
        if (dot) --tens;
    }
    if (digits == 0) return {};
    const Scale scale = scale_of({s.data + i, s.size - i});
    if (!scale.ok) return {};
    tens += scale.tens;
    for (int k = 0; k < scale.twos && !huge; ++k) {
        mantissa *= 2;
        huge = mantissa >= kCap << 20;
    }
    for (; tens > 0 && mantissa != 0 && !huge; --tens) {
        mantissa *= 10;
        huge = mantissa >= kCap << 20;
    }
    for (; tens < 0 && mantissa != 0; ++tens) {
        sticky |= mantissa % 10 != 0;
        mantissa /= 10;
    }
    if (huge) mantissa = kCap;
    if (sticky) ++mantissa;
    const Wide most = static_cast<Wide>(INT64_MAX);
    // Binary amounts stop at the largest int64; the reference lets decimal ones wrap around, which no one can mean.
    if (mantissa > most && scale.twos == 0) return {};
    const int64_t size = mantissa > most ? INT64_MAX : static_cast<int64_t>(mantissa);
    return {minus ? -size : size, true, is_exact(scale, whole > 0 ? whole : 1, fraction, mantissa <= most)};
}

}  // namespace kv
