#pragma once

#include <cstdint>
#include <limits>

namespace stoker {

// A small, fast, seedable generator whose stream is the same on every machine: SplitMix64 (Steele,
// Lea, Flood, OOPSLA 2014). Good for jitter, tests and simulation, not for secrets. Not
// thread-safe: one owner each. Usable as a standard UniformRandomBitGenerator.
class Prng {
public:
    using result_type = std::uint64_t;

    explicit Prng(std::uint64_t seed)
        : state_(seed) {}

    static constexpr result_type min() { return 0; }

    static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

    result_type operator()() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31U);
    }

    // The generator advanced by `words` words.
    [[nodiscard]] Prng after(std::uint64_t words) const {
        return Prng{state_ + words * 0x9E3779B97F4A7C15ULL};
    }

    // Uniform in [0, bound); `bound` must be positive. Unbiased (Lemire's rejection).
    std::uint64_t below(std::uint64_t bound) {
        __extension__ using Wide = unsigned __int128;
        Wide product = static_cast<Wide>((*this)()) * bound;
        auto low = static_cast<std::uint64_t>(product);
        if (low < bound) {
            const std::uint64_t threshold = (0 - bound) % bound;
            while (low < threshold) {
                product = static_cast<Wide>((*this)()) * bound;
                low = static_cast<std::uint64_t>(product);
            }
        }
        return static_cast<std::uint64_t>(product >> 64U);
    }

    // Uniform in [0, 1) with 53 random bits.
    double unit() { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }

private:
    std::uint64_t state_;
};

}  // namespace stoker
