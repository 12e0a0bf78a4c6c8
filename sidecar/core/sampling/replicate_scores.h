#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Importance of samples to one job, by SHADE's rank scores (FAST 2023): within a batch, sorted by
// loss, the sample that beats k others scores ln(k + bias), so scores compare across batches. A
// weight is the score plus a global floor, which grows while the mean loss grows. 4 bytes per
// sample. Not thread-safe.
class ReplicateScores {
public:
    // `unseen`: the score before the first loss; 0: ln(bias), the lowest score in a batch.
    ReplicateScores(std::uint32_t sample_count, double bias, double unseen = 0);

    // Scores the losses of one batch, by the served ids. Ignores NaN, infinite and negative losses,
    // unknown ids, and batches whose spans differ in length. Returns the number of losses used.
    std::uint64_t on_batch(std::span<const SampleIndex> samples, std::span<const float> losses);

    // Adjusts the floor to the epoch's mean loss: initially 0.01 of it, later multiplied by
    // exp(relative change). Without losses it stays.
    void end_epoch();

    [[nodiscard]] float score(SampleIndex sample) const { return scores_[sample]; }

    [[nodiscard]] double floor() const { return floor_; }

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(scores_.size()); }

    // Draws `count` times with replacement, in proportion to the weights. The order is random.
    [[nodiscard]] std::vector<SampleIndex> draw(std::uint64_t count, Prng& prng) const;

    // Rank among all scores, 0..1; equal scores share one.
    void ranks(std::vector<float>& ranks) const;

    struct State {
        std::vector<float> scores;
        double floor = 0;
        double last_mean = 0;  // 0: no epoch has ended yet
    };

    [[nodiscard]] State state() const { return {scores_, floor_, last_mean_}; }

    void set_state(State state);

private:
    double bias_;
    std::vector<float> scores_;
    double floor_ = 0;
    double last_mean_ = 0;
    double loss_sum_ = 0;
    std::uint64_t loss_count_ = 0;
};

}  // namespace stoker::sidecar
