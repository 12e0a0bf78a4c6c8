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

// 1 - (p_true - p_other), 0..2: small for what is far from being confused. `p_other` is the largest
// probability among the other classes.
double margin_term(double p_true, double p_other);

// 1 / (alpha * load + (1-alpha) * size), both relative to their means: small for what is expensive.
double fetch_term(double load, double size, double alpha);

struct CriteriaSettings {
    Bottleneck bottleneck = Bottleneck::kIo;
    double cross_entropy = 1;  // weights of the three, 0 or more
    double margin = 1;
    double fetch = 0.5;  // the least: it favours small and fast samples
    double alpha = 0.5;  // of the load time; the rest is size
    // Sizes of the samples, where they differ.
    std::function<Bytes(SampleIndex)> size_of = {};
};

// Scores the samples of one job, 0..1, high = important: each criterion min-max normalised over the
// samples that were measured, then their weighted mean (the combination is not in the source; it is
// ours and configurable). Scores are told apart in steps of 1/65534, so that they are ranked by
// counting them. 10 bytes a sample, 4 more once load times come. Not thread-safe. Deterministic.
class BucketCriteria {
public:
    // A score in steps; kUnknown: not known at the last rescore().
    using Steps = std::uint16_t;
    static constexpr Steps kUnknown = 65535;

    BucketCriteria(std::uint32_t count, CriteriaSettings settings);

    // What training said: the loss, that is -ln p_true, from which the probability of the other
    // classes is at most 1 - p_true. False: unknown sample, not finite.
    bool record_loss(SampleIndex sample, float loss);

    // The same where the client reports both; 0..1. False: as above.
    bool record_outcome(SampleIndex sample, float p_true, float p_other);

    // How long it took to load, in seconds, 0 or more.
    bool record_load(SampleIndex sample, float seconds);

    void set_bottleneck(Bottleneck bottleneck) { settings_.bottleneck = bottleneck; }

    // Takes all that came since into the scores and their ranks: O(count), some 10 ns a sample.
    void rescore();

    // The sample will be recorded soon: asks for its place in memory. Any sample.
    void expect(SampleIndex sample) const {
        if (sample < outcomes_.size()) {
            __builtin_prefetch(&outcomes_[sample], 1);
        }
    }

    [[nodiscard]] bool knows(SampleIndex sample) const {
        return outcomes_[sample].p_true != kUnknown;
    }

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

    [[nodiscard]] std::size_t memory_bytes() const;

private:
    // Probabilities in steps of 1/65534.
    struct Outcome {
        Steps p_true = kUnknown;
        Steps p_other = kUnknown;
    };

    // What one criterion gave: a number for each known sample, and its range over them.
    struct Ranges;

    [[nodiscard]] bool fetches_differ() const;
    [[nodiscard]] double fetch_of(SampleIndex sample) const;
    void measure(Ranges& ranges);
    void score_all(const Ranges& ranges, std::vector<std::uint32_t>& counts);
    void rank_all(const std::vector<std::uint32_t>& counts);

    CriteriaSettings settings_;
    std::vector<Outcome> outcomes_;
    std::vector<float> loads_;  // seconds; NaN: unknown; empty: none has come
    std::vector<Steps> scores_;
    std::vector<float> ranks_;
    double load_sum_ = 0;
    std::uint32_t load_count_ = 0;
    double mean_size_ = 1;
    std::uint32_t known_ = 0;
    double mean_loss_ = 0;
};

}  // namespace stoker::sidecar
