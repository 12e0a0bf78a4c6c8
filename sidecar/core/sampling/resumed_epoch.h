#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// The rest of an epoch that a rank had partly read when it was interrupted. Before, it read from
// a sampler on another node, or in an order that no sampler chose. The new sampler walks the
// epoch from the start and skips one step for each earlier draw: the step of the sample that was
// read, or a step for which that sample may have been the stand-in. So a rank reads no sample
// twice and as many as without the interruption, or a few less if earlier draws match no step.
// The
class ResumedEpoch {
public:
    // `had`: one flag per sample already read. `draws`: number of draws that returned these
    // samples. `steps_max`: the most draws that the whole epoch can have.
    ResumedEpoch(std::vector<bool> had, std::uint64_t draws, std::uint64_t steps_max)
        : had_(std::move(had)),
          distinct_(static_cast<std::uint64_t>(std::count(had_.begin(), had_.end(), true))),
          draws_(std::max(draws, distinct_)),
          unsettled_(draws_),
          left_(steps_max - std::min(draws_, steps_max)) {}

    // Whether to skip this step, because an earlier draw accounts for it. `may_get_another`: the
    // step's draw may have given a stand-in.
    bool settle(SampleIndex sample, bool may_get_another) {
        const bool settled = unsettled_ > 0 && (had_[sample] || may_get_another);
        unsettled_ -= settled ? 1 : 0;
        return settled;
    }

    // Call when a step of the epoch's rest was drawn.
    void take() { --left_; }

    [[nodiscard]] bool has_ended() const { return left_ == 0; }

    [[nodiscard]] bool had(SampleIndex sample) const { return had_[sample]; }

    [[nodiscard]] const std::vector<bool>& had() const { return had_; }

    // Adds the draws from before the interruption to a new report.
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

// One rank's served samples in its epoch: from this sampler, and from before an interruption.
struct RankEpoch {
    std::optional<ResumedEpoch> resumed;
    std::vector<bool> served;
    EpochReport report;

    // Begins a new epoch over `count` samples, or the rest of one.
    void begin(std::uint32_t count, std::uint64_t epoch, std::optional<ResumedEpoch> rest) {
        report = EpochReport{.epoch = epoch};
        served.assign(count, false);
        if (rest) {
            served = rest->had();
            rest->count_had(report);
        }
        resumed = std::move(rest);
    }

    [[nodiscard]] bool had(SampleIndex sample) const { return resumed && resumed->had(sample); }

    // The walk's next step that is still to be drawn; in a resumed epoch, skips the steps drawn
    // before the interruption. `next` returns a step of the whole epoch; `may_get_another`: see
    // ResumedEpoch::settle().
    template <class Next, class MayGetAnother>
    auto next_left(const Next& next, const MayGetAnother& may_get_another) -> decltype(next()) {
        while (!resumed || !resumed->has_ended()) {
            auto step = next();
            if (!step || !resumed || !resumed->settle(step->sample, may_get_another(*step))) {
                return step;
            }
            leave_out(step->left_out);
        }
        return std::nullopt;
    }

    // Counts a draw; marks it as repeated if its sample was served before.
    void count(Draw& draw) {
        if (served[draw.served]) {
            draw.kind = Draw::Kind::kRepeated;
        }
        report.count(draw);
        served[draw.served] = true;
    }

    // Adds the number of samples left out; -1 takes one back.
    void leave_out(std::int32_t samples) {
        report.skipped += static_cast<std::uint64_t>(std::int64_t{samples});
    }

    // Ends the epoch: samples of the share (`turns`) that were not requested count as skipped.
    void end(std::uint32_t turns) {
        report.skipped = turns - std::min<std::uint64_t>(turns, report.requested);
    }
};

}  // namespace stoker::sidecar
