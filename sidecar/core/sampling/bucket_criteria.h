#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// What holds a job up, and so what makes a sample worth its place (IOWA).
enum class Bottleneck : std::uint8_t {
    kCompute,  // the step: by cross entropy alone
    kIo,       // the reading: by cross entropy, margin and the cost of fetching
};

// -p log2 p of the true class: small for what is learnt. It peaks at p = 1/e and falls again for
// the hardest, which margin_term() corrects.
double cross_entropy_term(double p_true);

// 1 - (p_true - p_other), 0..2: small for what is far from being confused. `p_other`, the largest
// probability among the other classes, cannot be told from a loss: its bound 1 - p_true stands for
// it, so the margin rises with the loss.
double margin_term(double p_true);

// 1 / size, relative to the mean: small for what is expensive. (The slides mix the time to load in,
// which at one origin is a constant, the size, and a queue that is of our own making: going by it
// would make what a seed reads depend on the clock.)
double fetch_term(double size);

struct CriteriaSettings {
    Bottleneck bottleneck = Bottleneck::kIo;
    double cross_entropy = 1;  // weights of the three, 0 or more
    double margin = 1;
    double fetch = 0.5;  // the least: it favours small and fast samples
    // Sizes of the samples, where they differ.
    std::function<Bytes(SampleIndex)> size_of = {};
};

// Scores the samples of one job, 0..1, high = important: each criterion min-max normalised over the
// samples that were measured, then their weighted mean (the combination is not in the source; it is
// ours and configurable). Scores are told apart in steps of 1/65534, so that they are ranked by
// counting them. 8 bytes a sample. Not thread-safe. Deterministic.
class BucketCriteria {
public:
    // A score in steps; kUnknown: not known at the last rescore().
    using Steps = std::uint16_t;
    static constexpr Steps kUnknown = 65535;

    BucketCriteria(std::uint32_t count, CriteriaSettings settings);

    // What training said: the loss, that is -ln p_true. False: unknown sample, not finite.
    bool record(SampleIndex sample, float loss);

    // The same as the probability of the true class, 0..1.
    bool record_probability(SampleIndex sample, float p_true);

    void set_bottleneck(Bottleneck bottleneck) { settings_.bottleneck = bottleneck; }

    [[nodiscard]] Bottleneck bottleneck() const { return settings_.bottleneck; }

    // Takes all that came since into the scores and their ranks: O(count), some 10 ns a sample.
    void rescore();

    // The sample will be recorded soon: asks for its place in memory. Any sample.
    void expect(SampleIndex sample) const {
        if (sample < p_trues_.size()) {
            __builtin_prefetch(&p_trues_[sample], 1);
        }
    }

    [[nodiscard]] bool knows(SampleIndex sample) const { return p_trues_[sample] != kUnknown; }

    [[nodiscard]] std::uint32_t known() const { return known_; }

    // As of rescore(); NaN for what was not known then.
    [[nodiscard]] float score(SampleIndex sample) const;

    [[nodiscard]] Steps score_steps(SampleIndex sample) const { return scores_[sample]; }

    // Rank of the score among all, 0..1: equal scores share the middle rank, what was not known has
    // 1. The address and length never change.
    [[nodiscard]] std::span<const float> ranks() const { return ranks_; }

    // Mean of -ln p_true over all that is known, whenever it came; as of rescore().
    [[nodiscard]] double mean_loss() const { return mean_loss_; }

    [[nodiscard]] float p_true(SampleIndex sample) const;

private:
    // What one criterion gave: a number for each known sample, and its range over them.
    struct Ranges;

    [[nodiscard]] bool fetches_differ() const;
    [[nodiscard]] double fetch_of(SampleIndex sample) const;
    void measure(Ranges& ranges);
    void score_all(const Ranges& ranges, std::vector<std::uint32_t>& counts);
    void rank_all(const std::vector<std::uint32_t>& counts);

    CriteriaSettings settings_;
    std::vector<Steps> p_trues_;
    std::vector<Steps> scores_;
    std::vector<float> ranks_;
    double mean_size_ = 1;
    std::uint32_t known_ = 0;
    double mean_loss_ = 0;
};

}  // namespace stoker::sidecar
