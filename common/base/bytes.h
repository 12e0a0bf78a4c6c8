#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace stoker {

// A number of bytes, never negative in meaning and never wrapping: addition and multiplication
// saturate at unlimited(), subtraction at zero. Prevents the three bugs that plain integers invite
// in quotas: a sum that overflows to a small number, a difference that wraps to a huge one, and
// arithmetic on a "no limit" value.
class Bytes {
public:
    constexpr Bytes() = default;

    constexpr explicit Bytes(std::uint64_t count)
        : count_(count) {}

    static constexpr Bytes zero() { return Bytes{}; }

    static constexpr Bytes unlimited() { return Bytes{std::numeric_limits<std::uint64_t>::max()}; }

    [[nodiscard]] constexpr std::uint64_t count() const { return count_; }

    [[nodiscard]] constexpr bool is_unlimited() const { return *this == unlimited(); }

    auto operator<=>(const Bytes&) const = default;

    friend constexpr Bytes operator+(Bytes a, Bytes b) {
        return b.count_ > unlimited().count_ - a.count_ ? unlimited() : Bytes{a.count_ + b.count_};
    }

    // unlimited() minus anything stays unlimited.
    friend constexpr Bytes operator-(Bytes a, Bytes b) {
        if (a.is_unlimited()) {
            return a;
        }
        return b.count_ >= a.count_ ? zero() : Bytes{a.count_ - b.count_};
    }

    friend constexpr Bytes operator*(Bytes a, std::uint64_t factor) {
        if (factor != 0 && a.count_ > unlimited().count_ / factor) {
            return unlimited();
        }
        return Bytes{a.count_ * factor};
    }

    constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }

    constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

private:
    std::uint64_t count_ = 0;
};

constexpr Bytes kib(std::uint64_t n) {
    return Bytes{1024} * n;
}

constexpr Bytes mib(std::uint64_t n) {
    return Bytes{1024 * 1024} * n;
}

constexpr Bytes gib(std::uint64_t n) {
    return Bytes{1024ULL * 1024 * 1024} * n;
}

// For people, in binary units with at most one decimal: "310Gi", "1.5Mi", "17B", "unlimited".
std::string to_string(Bytes bytes);

}  // namespace stoker
