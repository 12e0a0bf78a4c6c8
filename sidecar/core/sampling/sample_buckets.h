#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
    kRemove,  // RRemove, if the step is the bottleneck: reads one sample of a group, in turns
    kRepeat,  // RRepeat, if reading is the bottleneck: serves a cached member for an absent one
};

// Options that are not contract parameters.
struct BucketOptions {
    CriteriaSettings criteria = {};
    bool adapt_rate = true;  // one rank: multiply outRate by the learnt share of the task (0..1)
    RedundancyGroups groups = {};  // initially known groups
    // Called when an epoch begins, for BucketCriteria::set_latency_bytes(); nullopt: no
    // measurement, the last value stays. Empty function: there is never a measurement.
    std::function<std::optional<double>()> latency_bytes = {};
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
// 5. With several ranks, the size of each epoch's bucket follows from the epoch number instead of 2's
//    rate and 3's progress (domain::draws_of_epoch), so that all ranks of a job read equally many
//    samples, on all nodes, whatever their nodes know.
// 6. The load time that the criteria use is that of the origin as measured when an epoch begins. It
//    stays for the epoch and is in the snapshot, so ranks and a resumed epoch agree.
//
// Under kRemove the members of a redundancy group take turns: each epoch reads the next one, so
// after as many epochs as the group has members each was read. A group of more than kTurnsMax
// members is split into several groups, so that no sample waits longer. The members of a group are
// in the bucket, or outside, together; the score of the one that was read last decides.
//
// Memory: 12 bytes and two bits per sample, and one bit more for each other epoch whose reads() are
// held; redundancy groups take 8 bytes more, and another 8 until they are known. Deterministic. Not
// thread-safe.
class SampleBuckets {
public:
    static constexpr std::uint32_t kTurnsMax = 4;  // epochs until every member of a group was read

    SampleBuckets(std::uint32_t count, const SamplerSettings& settings, BucketOptions options);

    // Moves samples into the bucket and out of it, once per epoch. For an epoch that was begun
    // before, moves none and only finds out which members of the bucket's groups that epoch reads.
    // Another call for the epoch begun last does nothing. O(N), about 25 ns per sample.
    void begin_epoch(std::uint64_t epoch);

    // Whether the most recently begun epoch reads the sample: its redundancy group is in the
    // bucket, and it is the member that this epoch reads.
    [[nodiscard]] bool contains(SampleIndex sample) const { return (*reads_)[sample]; }

    // contains() for all samples, one flag each. Never null. The flags never change, so a rank may
    // keep them while another rank begins another epoch.
    [[nodiscard]] std::shared_ptr<const std::vector<bool>> reads() const { return reads_; }

    // Number of samples that the most recently begun epoch reads.
    [[nodiscard]] std::uint32_t size() const { return size_; }

    // Whether the sample is outside the bucket.
    [[nodiscard]] bool waits(SampleIndex sample) const { return waiting_[sample]; }

    // Number of samples outside the bucket; the members of a redundancy group count once.
    [[nodiscard]] std::uint32_t waiting() const { return waiting_count_; }

    // Whether `epoch` reads all samples regardless of the buckets.
    [[nodiscard]] bool is_regular(std::uint64_t epoch) const { return settings_.reads_all(epoch); }

    // Samples that may substitute for the sample; none unless near-duplicates repeat.
    [[nodiscard]] std::span<const SampleIndex> alike(SampleIndex sample) const {
        return redundancy_ == Redundancy::kRepeat ? groups_.group_of(sample)
                                                  : std::span<const SampleIndex>{};
    }

    // Accepts the trainer's measurements.
    [[nodiscard]] BucketCriteria& criteria() { return criteria_; }

    [[nodiscard]] const BucketCriteria& criteria() const { return criteria_; }

    // Value of each sample: outside the bucket less than half (by rank). In the bucket: 1 for a
    // sample that every epoch reads, 1/2 + 1/2m for a member of a group of m of which each epoch
    // reads one. The address and length never change.
    [[nodiscard]] std::span<const float> worths() const { return worths_; }

    // Does what Sampler::on_similarity() does. Fingerprints are freed once every sample has one.
    void on_similarity(std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes);
    void on_quality(double quality);
    void on_waiting(double share);

    // One byte per sample: the highest bit is set outside the bucket, the others are p_true in
    // steps of 1/126, or 127 if unknown. If any p_other is known, another byte per sample follows:
    // p_other in steps of 1/254, or 255. RedundancyGroups::copies() follows.
    void write(WireWriter& wire) const;

    // Reads what write() wrote. False: corrupt; nothing was changed.
    bool read(WireReader& wire);

private:
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(worths_.size()); }

    [[nodiscard]] std::uint64_t epoch() const { return turned_for_ == 0 ? 0 : turned_for_ - 1; }

    // Calls visit(span of samples) for each group of which an epoch reads one member, or single
    // sample.
    template <class Visit>
    void each_part(const Visit& visit) const;
    void move(std::span<const SampleIndex> part, bool out);
    void group_alike();
    void settle_parts();
    [[nodiscard]] bool has_progressed();
    [[nodiscard]] double learnt() const;
    [[nodiscard]] std::uint32_t parts() const;
    void follow_progress();
    void follow_schedule();
    [[nodiscard]] std::uint32_t leaving() const;
    void sample_out(std::uint32_t left);
    [[nodiscard]] BucketCriteria::Steps score_of(std::span<const SampleIndex> part) const;
    void recall(std::uint32_t left);
    void measure(std::uint64_t epoch);
    void read_samples(std::span<const std::byte> samples, std::span<const std::byte> others);

    SamplerSettings settings_;
    double out_rate_;
    double min_fraction_;
    std::uint32_t recall_after_;
    double recall_fraction_;
    Redundancy redundancy_;
    bool adapt_rate_;

    BucketCriteria criteria_;
    RedundancyGroups groups_;
    std::function<std::optional<double>()> latency_bytes_;
    std::vector<Fingerprint> prints_;  // fingerprints, until all are known
    std::vector<bool> printed_;
    std::uint32_t printed_count_ = 0;
    bool has_new_prints_ = false;
    std::vector<bool> waiting_;  // equal for all members of a part
    // The samples that epoch read_in_ reads. If a caller of reads() holds the flags, they are
    // copied before a change.
    std::shared_ptr<std::vector<bool>> reads_;
    std::uint64_t read_in_ = 0;
    std::vector<float> worths_;
    std::uint32_t waiting_count_ = 0;  // number of parts (groups or pieces of groups)
    std::uint32_t size_ = 0;

    std::uint64_t turned_for_ = 0;  // epoch + 1
    std::optional<double> quality_;
    std::optional<double> best_quality_;
    std::optional<double> best_loss_;
    double first_loss_ = 0;
    std::uint32_t without_progress_ = 0;
};

}  // namespace stoker::sidecar
