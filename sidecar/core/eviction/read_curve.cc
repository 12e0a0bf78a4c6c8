#include "sidecar/core/eviction/read_curve.h"

#include <cmath>

namespace stoker::sidecar {

ReadCurve::ReadCurve(double beta, double full_share) {
    const double selective = 1 - full_share;
    const double mean = full_share + selective / (1 + beta);
    for (std::size_t step = 0; step <= kSteps; ++step) {
        const double importance = static_cast<double>(step) / kSteps;
        const double reads = full_share + selective * std::pow(importance, beta);
        reads_[step] = static_cast<float>(reads / (2 * mean));
    }
}

}  // namespace stoker::sidecar
