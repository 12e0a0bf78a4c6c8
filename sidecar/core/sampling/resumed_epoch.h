#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
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

// What one rank has had of its epoch, from this sampler and before a break.
struct RankEpoch {
    std::optional<ResumedEpoch> resumed;
    std::vector<bool> served;
    EpochReport report;

    // A new epoch over `count` samples, or the rest of one.
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

    // The next step of the walk that is still to be drawn: in a resumed epoch only the rest of it.
    // `next` gives a step of the whole epoch; `may_get_another` is ResumedEpoch::settle()'s.
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

    // Counts a draw, which repeats a sample that was served before.
    void count(Draw& draw) {
        if (served[draw.served]) {
            draw.kind = Draw::Kind::kRepeated;
        }
        report.count(draw);
        served[draw.served] = true;
    }

    // So many samples of the share, or one fewer than before where it is -1.
    void leave_out(std::int32_t samples) {
        report.skipped += static_cast<std::uint64_t>(std::int64_t{samples});
    }

    // The epoch has ended: what was not asked for of a share of so many turns was left out.
    void end(std::uint32_t turns) {
        report.skipped = turns - std::min<std::uint64_t>(turns, report.requested);
    }
};

}  // namespace stoker::sidecar
