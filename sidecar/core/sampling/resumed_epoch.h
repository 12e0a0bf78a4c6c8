#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// What is left of an epoch of which a rank has had some already: from a sampler with other samples
// on its node, or alone in another order. Its sampler walks the epoch from the start and asks of
// each step whether it is settled. Every draw that was had settles one step: that of its sample, or
// one that may have got this sample in another's place. So a rank reads as many samples as without
// the break, and none again.
class ResumedEpoch {
public:
    // `had`: the samples, one flag each. `draws`: how many draws gave them. `steps_max`: how many
    // draws the whole epoch has at most.
    ResumedEpoch(std::vector<bool> had, std::uint64_t draws, std::uint64_t steps_max)
        : had_(std::move(had)),
          distinct_(static_cast<std::uint64_t>(std::count(had_.begin(), had_.end(), true))),
          draws_(std::max(draws, distinct_)),
          unsettled_(draws_),
          left_(steps_max - std::min(draws_, steps_max)) {}

    // Was this step drawn before? `may_get_another`: its draw may have given another sample.
    bool settle(SampleIndex sample, bool may_get_another) {
        const bool settled = unsettled_ > 0 && (had_[sample] || may_get_another);
        unsettled_ -= settled ? 1 : 0;
        return settled;
    }

    // One more step is drawn.
    void take() { --left_; }

    [[nodiscard]] bool has_ended() const { return left_ == 0; }

    [[nodiscard]] bool had(SampleIndex sample) const { return had_[sample]; }

    [[nodiscard]] const std::vector<bool>& had() const { return had_; }

    // Into a report that is new.
    void count_had(EpochReport& report) const {
        report.requested = draws_;
        report.distinct = distinct_;
        report.repeated = draws_ - distinct_;
    }

private:
    std::vector<bool> had_;
    std::uint64_t distinct_;
    std::uint64_t draws_;
    std::uint64_t unsettled_;
    std::uint64_t left_;
};

}  // namespace stoker::sidecar
