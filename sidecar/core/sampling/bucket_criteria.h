#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// A job's bottleneck, which selects the criteria of its scores (SampleBuckets).
enum class Bottleneck : std::uint8_t {
    kCompute,  // training steps: cross entropy alone
    kIo,       // reading: cross entropy, margin and fetch cost
};

// -ln p of the true class, that is the loss: it grows as a sample gets harder. (The published -p
// log2 p falls again for p below 1/e, so a sample that is not learnt at all would be as unimportant
// as one that is mastered.) p below 1/131068 counts as 1/131068, because p is stored in steps.
double cross_entropy_term(double p_true);

// 1 - (p_true - p_other), 0..2: small for samples far from confusion. `p_other`: the largest
// probability among the other classes; above its upper bound 1 - p_true it counts as the bound.
double margin_term(double p_true, double p_other);

// 1 / load time: small for expensive samples. The load time is latency + size / bandwidth, in units
// of the transfer time of a sample of mean size. So both `size` and `latency` are divided by the mean
// size, the latter as the bytes that the link transfers in that time.
double fetch_term(double size, double latency);

struct CriteriaSettings {
    Bottleneck bottleneck = Bottleneck::kIo;
    double cross_entropy = 1;  // weights of the three criteria, 0 or more
    double margin = 1;
    double fetch = 0.5;  // smallest weight, because the term favours small and fast samples
    // Sizes of the samples, if they differ.
    std::function<Bytes(SampleIndex)> size_of = {};
};

// Scores the samples of one job, 0..1, high = important. Cross entropy and margin are min-max
// normalised over the measured samples; the fetch term is divided by its greatest value, so it
// counts little if all samples load about equally fast. The score is their weighted mean (the
// source gives no combination; ours is configurable). Scores have steps of 1/65534, so that
// counting ranks them. 8 bytes per sample, and 2 more once a p_other was recorded. Not thread-safe.
// Deterministic.
class BucketCriteria {
public:
    // A score in steps; kUnknown: no measurement at the last rescore().
    using Steps = std::uint16_t;
    static constexpr Steps kUnknown = 65535;

    BucketCriteria(std::uint32_t count, CriteriaSettings settings);

    // Records a training loss, that is -ln p_true. False: unknown sample, or not finite.
    bool record(SampleIndex sample, float loss);

    // Does what record() does, from the probability of the true class, 0..1.
    bool record_probability(SampleIndex sample, float p_true);

    // Records the largest probability among the other classes, 0..1, at the sample's last record();
    // the next record() of the sample forgets it. False: unknown sample, no record() before, or a
    // number outside 0..1.
    bool record_other(SampleIndex sample, float p_other);

    // The origin's latency x bandwidth: the size whose transfer takes as long as the latency. 0 or
    // more; infinite: the load time does not depend on the size.
    void set_latency_bytes(double bytes);

    [[nodiscard]] double latency_bytes() const { return latency_bytes_; }

    void set_bottleneck(Bottleneck bottleneck) { settings_.bottleneck = bottleneck; }

    [[nodiscard]] Bottleneck bottleneck() const { return settings_.bottleneck; }

    // Updates scores and ranks from all records so far: O(count), some 10 ns per sample.
    void rescore();

    // Hint: the sample will be recorded soon; prefetches its state into the processor's cache.
    // Accepts any id.
    void expect(SampleIndex sample) const {
        if (sample < p_trues_.size()) {
            __builtin_prefetch(&p_trues_[sample], 1);
        }
    }

    [[nodiscard]] bool knows(SampleIndex sample) const { return p_trues_[sample] != kUnknown; }

    [[nodiscard]] std::uint32_t known() const { return known_; }

    // The score at the last rescore(); NaN: the sample had no measurement then.
    [[nodiscard]] float score(SampleIndex sample) const;

    [[nodiscard]] Steps score_steps(SampleIndex sample) const { return scores_[sample]; }

    // Rank of the score among all, 0..1: equal scores share the middle rank, unknown samples have
    // 1. The address and length never change.
    [[nodiscard]] std::span<const float> ranks() const { return ranks_; }

    // Mean of -ln p_true over all known samples, of any age; as of rescore().
    [[nodiscard]] double mean_loss() const { return mean_loss_; }

    // The sample's last probability of its true class; NaN if unknown.
    [[nodiscard]] float p_true(SampleIndex sample) const;
    [[nodiscard]] float p_other(SampleIndex sample) const;

    [[nodiscard]] bool knows_other(SampleIndex sample) const {
        return !p_others_.empty() && p_others_[sample] != kUnknown;
    }

private:
    // Ranges of the criteria over all known samples.
    struct Ranges;

    [[nodiscard]] bool fetches_differ() const;
    [[nodiscard]] double fetch_of(SampleIndex sample) const;
    [[nodiscard]] double margin_of(SampleIndex sample) const;
    void measure(Ranges& ranges);
    void score_all(const Ranges& ranges, std::vector<std::uint32_t>& counts);
    void rank_all(const std::vector<std::uint32_t>& counts);

    CriteriaSettings settings_;
    std::vector<Steps> p_trues_;
    std::vector<Steps> p_others_;  // empty until one is recorded
    std::vector<Steps> scores_;
    std::vector<float> ranks_;
    double mean_size_ = 1;
    double latency_bytes_ = 0;
    std::uint32_t known_ = 0;
    double mean_loss_ = 0;
};

}  // namespace stoker::sidecar
