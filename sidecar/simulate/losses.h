#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

namespace stoker::simulate {

using domain::SampleIndex;

// Simulated training losses: every sample has a permanent importance, log-normal(0,1), times noise
// per visit, log-normal(0,.3). Losses are rounded to 16 significant bits (those of mixed precision
// have 8 or 11) and then scaled: so any scale keeps equal losses equal and others in order. With
// all 24 bits of a float, rounding after the scaling could make different losses equal. Not
// thread-safe.
class Losses {
public:
    struct Shape {
        double sigma = 1;        // of the logarithm of the permanent importance
        double noise = 0.3;      // of the logarithm of one visit's noise
        double scale = 1;        // multiplies every loss
        double decay = 0;        // decrease of the scale per epoch, by training
        double correlation = 0;  // with the importance in other jobs of equal `common_seed`, 0..1
    };

    Losses(std::uint64_t samples, Shape shape, std::uint64_t common_seed, std::uint64_t own_seed);

    void begin_epoch(std::uint64_t epoch) {
        scale_ = static_cast<float>(
            shape_.scale * std::pow(1 - shape_.decay, static_cast<double>(epoch)));
    }

    // The loss at one visit.
    float visit(SampleIndex sample) {
        return scaled(importance_[sample] * noise_[prng_() % kNoises]);
    }

    // The loss without noise.
    [[nodiscard]] float importance(SampleIndex sample) const { return scaled(importance_[sample]); }

private:
    // Noise comes from a table, because a logarithm per visit would cost more than the decision
    // that it feeds.
    static constexpr std::size_t kNoises = 4096;

    [[nodiscard]] float scaled(float loss) const {
        const auto bits = std::bit_cast<std::uint32_t>(loss);
        return scale_ * std::bit_cast<float>((bits + 0x80U) & ~0xFFU);
    }

    Prng prng_;
    Shape shape_;
    float scale_;
    std::vector<float> importance_;
    std::vector<float> noise_;
};

// A standard normal variate (Box-Muller).
double normal(Prng& prng);

}  // namespace stoker::simulate
