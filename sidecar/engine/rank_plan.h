#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// One rank's epoch: what it has drawn, what of that it has not read yet, and what it is going to
// read. Not thread-safe.
class RankPlan {
public:
    RankPlan() = default;

    // `horizon`: draws to foresee. `served`: samples that the rank had in this epoch before, one
    // flag each, which are never drawn again; empty: none.
    RankPlan(std::uint32_t rank, std::size_t horizon, std::vector<bool> served);

    // Fewer than `count`: the epoch has ended.
    std::vector<Draw> draw(Sampler& sampler, std::size_t count);

    // The rank has read one of its draws, or a sample that it never drew.
    void on_read(SampleIndex sample);

    // Draws that it has not read.
    [[nodiscard]] std::size_t unread() const { return unread_; }

    [[nodiscard]] bool has_ended() const { return has_ended_; }

    // What the rank is going to read, soonest first: drawn and not read yet, then foreseen.
    // nullopt: what was given last still holds, because draws came as foreseen and less than half
    // of those have come.
    std::optional<std::vector<SampleIndex>> renew(const Sampler& sampler);

private:
    void note(const Draw& draw);

    std::uint32_t rank_ = 0;
    std::size_t horizon_ = 0;
    std::vector<bool> served_;
    bool has_ended_ = false;
    bool is_stale_ = true;
    std::vector<SampleIndex> drawn_;  // in order; may hold what was read since
    std::unordered_map<SampleIndex, std::uint32_t> unread_counts_;
    std::size_t unread_ = 0;
    std::vector<SampleIndex> foreseen_;
    std::size_t foreseen_drawn_ = 0;  // how many of them were drawn, as foreseen
};

}  // namespace stoker::sidecar
