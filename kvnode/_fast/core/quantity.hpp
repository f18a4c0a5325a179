// resource.Quantity in C: text to a whole number, rounded up, kept within int64.
// Grammar and suffixes: k8s.io/apimachinery/pkg/api/resource/quantity.go. The full type is kvnode.Quantity; a test holds the two together.
#pragma once
#include "tape.hpp"

namespace kv {

struct Amount {
    int64_t value = 0;
    bool ok = false;
    bool exact = false;  // Quantity.AsInt64 of the reference gives it: a whole number kept in its fast form
};

// The quantity times 1000^milli, rounded away from zero to a whole number.
Amount parse_quantity(Text s, bool milli = false);

}  // namespace kv
