#pragma once

#include <array>
#include <cstddef>

namespace stoker::sidecar {

// How often a job reads a sample, as a function of the sample's relative importance U (0..1). The
// curve's value is the sample's expected reads divided by twice the mean over all samples. Its mean
// is then 1/2, as the mean of U is, so curves of different jobs can be added, weighted by the jobs'
// read rates. A table of 4 KiB; immutable.
class ReadCurve {
public:
    // The job reads a sample in proportion to its relative importance: at(U) = U.
    ReadCurve()
        : ReadCurve(1, 0) {}

    // Percentile sampling (iCACHE): a selective epoch reads a sample with probability U^beta.
    // `full_share`: share of the epochs that read everything.
    ReadCurve(double beta, double full_share);

    // Interpolated; exact for beta 1 without full epochs. `importance`: 0..1.
    [[nodiscard]] float at(float importance) const {
        const float position = importance * static_cast<float>(kSteps);
        const auto step = static_cast<std::size_t>(position);
        if (step >= kSteps) {
            return reads_[kSteps];
        }
        const float part = position - static_cast<float>(step);
        return reads_[step] + part * (reads_[step + 1] - reads_[step]);
    }

private:
    static constexpr std::size_t kSteps = 1024;

    std::array<float, kSteps + 1> reads_{};
};

}  // namespace stoker::sidecar
