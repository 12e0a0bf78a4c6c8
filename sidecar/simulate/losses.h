#pragma once

#include <cstdint>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

namespace stoker::simulate {

using domain::SampleIndex;

// Losses as training shows them: every sample has a lasting importance, log-normal(0,1), and every
// visit sees it through noise, log-normal(0,.3) (algorithms of iCACHE, reproduction on two cores).
// Not thread-safe.
class Losses {
public:
    struct Shape {
        double sigma = 1;        // of the lasting importance
        double noise = 0.3;      // of one visit
        double scale = 1;        // multiplies every loss
        double correlation = 0;  // with other jobs of the same `common_seed`, 0..1
    };

    Losses(std::uint64_t samples, Shape shape, std::uint64_t common_seed, std::uint64_t own_seed);

    // The loss of one visit.
    float visit(SampleIndex sample) { return importance_[sample] * noise_[prng_() % kNoises]; }

    // Without noise.
    [[nodiscard]] float importance(SampleIndex sample) const { return importance_[sample]; }

private:
    // Noise is drawn from a table: a logarithm a visit would cost more than the decision it feeds.
    static constexpr std::size_t kNoises = 4096;

    Prng prng_;
    std::vector<float> importance_;
    std::vector<float> noise_;
};

// A standard normal variate (Box and Muller).
double normal(Prng& prng);

}  // namespace stoker::simulate
