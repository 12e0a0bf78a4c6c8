#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/base/bytes.h"
#include "common/base/clock.h"

// Arithmetic on untrusted numbers (from users and other programs): a result that does not fit
// becomes the largest or smallest value of its type. Use it for every conversion of an API's
// seconds to a Duration and of a status field's count to Bytes. Pure.
namespace stoker {

constexpr std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return b < 0 ? std::numeric_limits<std::int64_t>::min()
                 : std::numeric_limits<std::int64_t>::max();
}

constexpr std::int64_t subtract_saturated(std::int64_t a, std::int64_t b) {
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a, b, &difference)) {
        return difference;
    }
    return b > 0 ? std::numeric_limits<std::int64_t>::min()
                 : std::numeric_limits<std::int64_t>::max();
}

constexpr std::int64_t multiply_saturated(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) {
        return product;
    }
    return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max()
                              : std::numeric_limits<std::int64_t>::min();
}

// A Duration holds 292 years; longer times become Duration::max().
constexpr Duration saturated_seconds(std::int64_t seconds) {
    return Duration{multiply_saturated(seconds, std::nano::den)};
}

// `start` + `wait`; at most WallTime::max(), which is in the year 2262.
constexpr WallTime time_after(WallTime start, Duration wait) {
    return WallTime{Duration{add_saturated(start.time_since_epoch().count(), wait.count())}};
}

// Time from `start` to `end`; negative if `end` is earlier.
constexpr Duration elapsed_between(WallTime start, WallTime end) {
    return Duration{
        subtract_saturated(end.time_since_epoch().count(), start.time_since_epoch().count())};
}

// The bytes of a status field; a negative number becomes zero.
constexpr Bytes bytes_of(std::int64_t count) {
    return Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0))};
}

// The value of a status field for a count of things or bytes; saturates.
constexpr std::int64_t count_of(std::uint64_t count) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(count, kMax));
}

constexpr std::int64_t count_of(Bytes bytes) {
    return count_of(bytes.count());
}

}  // namespace stoker
