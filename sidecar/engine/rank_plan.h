#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/flat_map.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

// One rank's epoch: its draws, which of them it has not read yet, and what it will read next. Not
// thread-safe.
class RankPlan {
public:
    RankPlan() = default;

    // `horizon`: number of draws to foresee. `served`: one flag per sample that the rank has
    // already had in this epoch and must not draw again; empty: none.
    RankPlan(std::uint32_t rank, std::size_t horizon, std::vector<bool> served);

    // Draws the rank's next samples. Fewer than `count`: the epoch has ended.
    std::vector<Draw> draw(Sampler& sampler, std::size_t count);

    // Call when the rank has read a sample, drawn or not. Returns whether it was an unread draw.
    bool on_read(SampleIndex sample);

    // Number of draws not yet read.
    [[nodiscard]] std::size_t unread() const { return unread_; }

    // Draws not yet read, by sample.
    [[nodiscard]] const FlatMap<std::uint32_t>& unread_counts() const { return unread_counts_; }

    [[nodiscard]] bool has_ended() const { return has_ended_; }

    // The samples that the rank will read, soonest first: unread draws, then foreseen ones.
    // Returned as a change of the previous result. `in_force`: length of the plan that the caller
    // has. The result is a whole plan if `in_force` differs from the length of the previous result,
    // or if most draws of the plan were read. nullopt: the previous result still holds, because
    // draws matched it and less than half of it was drawn.
    std::optional<PlanTail> renew(const Sampler& sampler, std::uint32_t in_force);

private:
    void note(const Draw& draw);
    void forget_read();

    std::uint32_t rank_ = 0;
    std::size_t horizon_ = 0;
    std::vector<bool> served_;
    bool has_ended_ = false;
    bool is_stale_ = true;
    std::vector<SampleIndex> drawn_;  // in order; may include samples read since
    std::uint32_t planned_ = 0;       // drawn_ entries still at those positions
    std::uint32_t size_ = 0;          // positions given by the last result
    bool must_be_whole_ = false;      // a draw without a position was read
    FlatMap<std::uint32_t> unread_counts_;
    std::size_t unread_ = 0;
    std::vector<SampleIndex> foreseen_;
    std::size_t foreseen_drawn_ = 0;  // foreseen samples that were drawn since, as foreseen
};

}  // namespace stoker::sidecar
