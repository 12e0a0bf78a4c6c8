#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/wire.h"
#include "sidecar/core/sampling/bucket_criteria.h"
#include "sidecar/core/sampling/redundancy_groups.h"
#include "sidecar/core/sampling/sampler_settings.h"

namespace stoker::sidecar {

// Treatment of near-duplicates.
enum class Redundancy : std::uint8_t {
    kKeep,
    kRemove,  // RRemove, if the step is the bottleneck: reads only one of a group
    kRepeat,  // RRepeat, if reading is the bottleneck: serves a cached member for an absent one
};

// Options that are not contract parameters.
struct BucketOptions {
    CriteriaSettings criteria = {};
    bool adapt_rate = true;        // multiply outRate by the learnt share of the task, 0..1
    RedundancyGroups groups = {};  // initially known groups
};

// Assigns a job's samples, per epoch, to the bucket or to the waiting set outside it (IOWA; Hu,
// Chen, Yin, He; slides):
//
// 1. Regular epochs score every sample (BucketCriteria).
// 2. Sampling-out: each epoch begins by moving the lowest-scored share of the bucket outside.
// 3. Recall: after `recallAfter` epochs without progress, a random part of the samples outside
//    returns. Progress is measured by the trainer's quality reports, or else by the mean of the
//    last losses of all samples.
// 4. The bottleneck, which selects the score criteria, follows from the trainer's last wait share:
//    below 5 % it is the step, from 10 % on it is reading, in between it does not change. Before
//    the first report it is reading.
//
// Memory: 12 bytes and a bit per sample; redundancy groups take 8 more, and another 8 until they
// are known. Deterministic. Not thread-safe.
class SampleBuckets {
public:
    SampleBuckets(std::uint32_t count, const SamplerSettings& settings, BucketOptions options);

    // Moves samples between the buckets, once per epoch: later calls for the same epoch do nothing.
    // O(N), about 20 ns per sample.
    void begin_epoch(std::uint64_t epoch);

    // Whether the sample is read in this epoch.
    [[nodiscard]] bool contains(SampleIndex sample) const {
        return !waiting_[sample] && !is_removed(sample);
    }

    // Samples in the bucket, without removed copies.
    [[nodiscard]] std::uint32_t size() const { return size_; }

    [[nodiscard]] bool waits(SampleIndex sample) const { return waiting_[sample]; }

    [[nodiscard]] std::uint32_t waiting() const { return waiting_count_; }

    // Whether `epoch` reads all samples regardless of the buckets.
    [[nodiscard]] bool is_regular(std::uint64_t epoch) const { return epoch < warmup_epochs_; }

    // Samples that may substitute for the sample; none unless near-duplicates repeat.
    [[nodiscard]] std::span<const SampleIndex> alike(SampleIndex sample) const {
        return redundancy_ == Redundancy::kRepeat ? groups_.group_of(sample)
                                                  : std::span<const SampleIndex>{};
    }

    // Accepts the trainer's measurements.
    [[nodiscard]] BucketCriteria& criteria() { return criteria_; }

    [[nodiscard]] const BucketCriteria& criteria() const { return criteria_; }

    // Value of each sample: 1 in the bucket, less than half (by rank) outside. The address and
    // length never change.
    [[nodiscard]] std::span<const float> worths() const { return worths_; }

    // As Sampler::on_similarity(). Fingerprints are freed once every sample has one.
    void on_similarity(std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes);
    void on_quality(double quality);
    void on_waiting(double share);

    // One byte per sample: the highest bit is set outside the bucket, the others are p_true in
    // steps of 1/126, or 127 if unknown. The copies follow.
    void write(WireWriter& wire) const;

    // False: corrupt; nothing was changed.
    bool read(WireReader& wire);

private:
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(worths_.size()); }

    [[nodiscard]] bool is_removed(SampleIndex sample) const {
        return redundancy_ == Redundancy::kRemove && groups_.is_copy(sample);
    }

    void group_alike();
    [[nodiscard]] bool has_progressed();
    [[nodiscard]] double learnt() const;
    void sample_out();
    [[nodiscard]] bool may_go_out(SampleIndex sample) const;
    void recall(std::uint64_t epoch);
    void measure();

    std::uint64_t seed_;
    std::uint64_t warmup_epochs_;
    double out_rate_;
    double min_fraction_;
    std::uint32_t recall_after_;
    double recall_fraction_;
    Redundancy redundancy_;
    bool adapt_rate_;

    BucketCriteria criteria_;
    RedundancyGroups groups_;
    std::vector<Fingerprint> prints_;  // until all are known
    std::vector<bool> printed_;
    std::uint32_t printed_count_ = 0;
    bool has_new_prints_ = false;
    std::vector<bool> waiting_;
    std::vector<float> worths_;
    std::uint32_t waiting_count_ = 0;
    std::uint32_t size_ = 0;

    std::uint64_t turned_for_ = 0;  // epoch + 1
    std::optional<double> quality_;
    std::optional<double> best_quality_;
    std::optional<double> best_loss_;
    double first_loss_ = 0;
    std::uint32_t without_progress_ = 0;
};

}  // namespace stoker::sidecar
