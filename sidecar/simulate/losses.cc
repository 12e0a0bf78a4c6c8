#include "sidecar/simulate/losses.h"

#include <cmath>
#include <numbers>

namespace stoker::simulate {

double normal(Prng& prng) {
    const double radius = std::sqrt(-2 * std::log(1 - prng.unit()));
    return radius * std::cos(2 * std::numbers::pi * prng.unit());
}

Losses::Losses(
    std::uint64_t samples, Shape shape, std::uint64_t common_seed, std::uint64_t own_seed)
    : prng_(own_seed),
      shape_(shape),
      scale_(static_cast<float>(shape.scale)) {
    Prng common{common_seed};
    const double shared = std::sqrt(shape.correlation);
    const double own = std::sqrt(1 - shape.correlation);
    importance_.reserve(samples);
    for (std::uint64_t i = 0; i < samples; ++i) {
        const double z = shared * normal(common) + own * normal(prng_);
        importance_.push_back(static_cast<float>(std::exp(shape.sigma * z)));
    }
    noise_.reserve(kNoises);
    for (std::size_t i = 0; i < kNoises; ++i) {
        noise_.push_back(static_cast<float>(std::exp(shape.noise * normal(prng_))));
    }
}

}  // namespace stoker::simulate
