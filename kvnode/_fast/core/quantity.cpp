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
constexpr int kFractionDigits = 18;  // what lies further behind the point only rounds up

// The digits of a number, read once: whole + fraction / 10^places, and a remainder too small to tell.
struct Digits {
    Wide whole = 0;
    uint64_t fraction = 0;
    int places = 0;                      // of `fraction`
    int whole_digits = 0;                // significant ones, at least one
    int fraction_digits = 0;             // all of them
    bool minus = false, rest = false, huge = false, any = false;
    Text fraction_text;                  // its digits as written
    size_t size = 0;                     // how many characters were read
};

Digits read_digits(Text s) {
    Digits d;
    size_t i = 0;
    if (i < s.size && (s.data[i] == '+' || s.data[i] == '-')) d.minus = s.data[i++] == '-';
    bool dot = false;
    for (; i < s.size; ++i) {
        const char c = s.data[i];
        if (c == '.' && !dot) {
            dot = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        const auto digit = static_cast<unsigned>(c - '0');
        d.any = true;
        if (!dot) {
            d.whole_digits += (digit != 0 || d.whole_digits > 0) && d.whole_digits < 100;
            d.huge |= d.whole >= kCap;
            if (!d.huge) d.whole = d.whole * 10 + digit;
        } else {
            if (!d.fraction_text.data) d.fraction_text.data = s.data + i;
            ++d.fraction_text.size;
            d.fraction_digits += d.fraction_digits < 100;
            if (d.places < kFractionDigits) {
                d.fraction = d.fraction * 10 + digit;
                ++d.places;
            } else {
                d.rest |= digit != 0;
            }
        }
    }
    if (d.whole_digits == 0) d.whole_digits = 1;
    d.size = i;
    return d;
}

Wide ten_to(int n) {
    Wide product = 1;
    while (n-- > 0) product *= 10;
    return product;
}

// 0.FRACTION * 2^twos, by doubling the digits on paper. What lies behind the sixty-fourth digit is less than one all the same.
Wide fraction_times_two(Text fraction, int twos, bool& rest) {
    uint8_t digits[64];
    const size_t count = fraction.size < sizeof digits ? fraction.size : sizeof digits;
    for (size_t i = 0; i < fraction.size; ++i) {
        if (i < count) digits[i] = static_cast<uint8_t>(fraction.data[i] - '0');
        else rest |= fraction.data[i] != '0';
    }
    Wide whole = 0;
    for (int t = 0; t < twos; ++t) {
        unsigned carry = 0;
        for (size_t i = count; i-- > 0;) {
            const unsigned doubled = digits[i] * 2U + carry;
            digits[i] = static_cast<uint8_t>(doubled % 10);
            carry = doubled / 10;
        }
        whole = whole * 2 + carry;
    }
    for (size_t i = 0; i < count; ++i) rest |= digits[i] != 0;
    return whole;
}

// number * 2^twos, rounded up; kCap for more than that.
Wide times_two(const Digits& d, int twos) {
    if (d.huge || d.whole >= kCap >> twos) return kCap;
    bool rest = false;
    const Wide part = fraction_times_two(d.fraction_text, twos, rest);
    return (d.whole << twos) + part + rest;
}

// number * 10^tens, rounded up; kCap for more than that.
Wide times_ten(Digits d, int tens) {
    Wide mantissa = d.whole;
    if (d.huge) return kCap;
    if (mantissa < kCap >> 38) {  // room for the fraction behind it
        mantissa = mantissa * ten_to(d.places) + d.fraction;
        tens -= d.places;
    } else {
        d.rest |= d.fraction != 0;
    }
    for (; tens > 0 && mantissa != 0; --tens) {
        mantissa *= 10;
        if (mantissa >= kCap << 20) return kCap;
    }
    for (; tens < 0 && mantissa != 0; ++tens) {
        d.rest |= mantissa % 10 != 0;
        mantissa /= 10;
    }
    return mantissa + d.rest;
}

}  // namespace

Amount parse_quantity(Text s, bool milli) {
    const Digits d = read_digits(s);
    const Scale scale = scale_of({s.data + d.size, s.size - d.size});
    if (!d.any || !scale.ok) return {};
    Wide amount;
    if (scale.twos == 0) {
        amount = times_ten(d, scale.tens + (milli ? 3 : 0));
    } else {
        Digits counted = d;
        if (milli && !d.huge) counted.whole = d.whole < kCap >> 10 ? d.whole * 1000 : kCap;
        if (milli) counted.fraction_text = {};  // only compared, and only where the amounts themselves are equal
        amount = times_two(counted, scale.twos);
    }
    // Binary amounts stop at the largest int64; the reference lets decimal ones wrap around, which no one can mean.
    const Wide most = static_cast<Wide>(INT64_MAX);
    if (amount > most && scale.twos == 0) return {};
    const int64_t size = amount > most ? INT64_MAX : static_cast<int64_t>(amount);
    return {d.minus ? -size : size, true, is_exact(scale, d.whole_digits, d.fraction_digits, amount <= most)};
}

}  // namespace kv
