#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/wire.h"
#include "common/domain/contract_table.h"
#include "sidecar/core/sampling/bucket_criteria.h"
#include "sidecar/core/sampling/epoch_permutation.h"
#include "sidecar/core/sampling/redundancy_groups.h"
#include "sidecar/core/sampling/resumed_epoch.h"
#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// What is done about near-duplicates.
enum class Redundancy : std::uint8_t {
    kKeep,
    kRemove,  // RRemove, where the step is the bottleneck: only one of a group is read
    kRepeat,  // RRepeat, where reading is: a member on the node is given for one that is not
};

struct BucketSettings {
    World world = {};
    std::uint64_t seed = 0;
    CriteriaSettings criteria = {};
    std::uint64_t warmup = domain::kIowaWarmupEpochs;  // regular epochs, to score everything
    // Share of the bucket, per epoch, at most.
    double out_rate = domain::standard_of("importance", "outRate");
    bool adapt_rate = true;  // times what has been learnt, 0..1
    // Share of the dataset without removed copies, that stays.
    double min_fraction = domain::standard_of("importance", "minFraction");
    // Epochs without progress until waiting samples are recalled.
    std::uint32_t recall_after = domain::standard_of("importance", "recallAfter");
    double progress = 0.01;  // what counts as such, relative to the best so far
    // Share of those that wait.
    double recall_fraction = domain::standard_of("importance", "recallFraction");
    Redundancy redundancy = Redundancy::kKeep;
    std::uint32_t alike_bits = 3;  // fingerprints that differ in at most so many are alike
};

// The contract `importance` of the IOWA family (Hu, Chen, Yin, He; slides): samples wait outside
// while they are unimportant.
//
// 1. Regular epochs score every sample (BucketCriteria).
// 2. Sampling-out: at every epoch's beginning the lowest-scored share of the bucket goes to wait.
// 3. Recall: after `recall_after` epochs without progress a random part of those comes back.
//    Progress is the quality that the trainer reports, or else the mean of the last losses of all
//    samples.
// 4. The bottleneck, by which samples are scored, is what the trainer's waiting showed last: a job
//    that waits for less than a twentieth of its time is held up by the step, from a tenth on by
//    reading; in between it stays as it was. Reading, until somebody tells.
// Near-duplicates are left out or stand in for one another (RedundancyGroups).
//
// All ranks of a node share the bucket, and read equally many samples; ranks on other nodes do so
// as far as their sidecars know the same losses. An epoch's beginning takes O(N), some 20
// ns a sample, of which the first rank to begin pays all. 12 bytes and two bits a sample;
// redundancy groups 8, and 8 until they are known. Deterministic. Not thread-safe.
class BucketSampler final : public Sampler {
public:
    // kInvalidArgument names the setting.
    static Result<std::unique_ptr<BucketSampler>> create(
        const Residency& node,
        std::uint32_t count,
        BucketSettings settings,
        RedundancyGroups groups = {});

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void resume_epoch(
        std::uint32_t rank,
        std::uint64_t epoch,
        std::uint64_t skip,
        const std::vector<bool>& served) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;
    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;
    // 1 for what is in the bucket: all of it is read once an epoch, so displacing one by another
    // would only cost a fetch. Less than half, by rank, for what is not.
    [[nodiscard]] std::span<const float> relative_importance() const override;
    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

    // Near-duplicates among all that came are told apart from the next epoch on. Ignored where
    // copies are kept. Fingerprints are forgotten once all samples have theirs.
    void on_similarity(
        std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes) override;

    // Accuracy on held-out samples, 0..1, at the end of an epoch.
    void on_quality(double quality) override;

    void on_waiting(double share) override;

    [[nodiscard]] Bottleneck bottleneck() const { return criteria_.bottleneck(); }

    [[nodiscard]] bool waits(SampleIndex sample) const { return waiting_[sample]; }

    [[nodiscard]] std::uint32_t waiting() const { return waiting_count_; }

    [[nodiscard]] std::size_t memory_bytes() const;

private:
    // Where a rank is in its epoch.
    struct Cursor {
        std::uint32_t turn = 0;
        std::uint32_t taken_back = 0;
        std::uint32_t steps = 0;
    };

    struct Step {
        SampleIndex sample = 0;
        std::int64_t left_out = 0;  // since the step before; -1: this one was
    };

    struct Reader {
        explicit Reader(std::uint32_t count)
            : order(count, 0, 0),
              served(count, false) {}

        EpochPermutation order;
        std::uint64_t epoch = std::numeric_limits<std::uint64_t>::max();
        bool full = true;
        std::uint32_t steps_max = 0;
        // How far the epoch is decided. Deciding ahead changes nothing, so that foreseeing may.
        mutable Cursor cursor;
        mutable std::deque<Step> ahead;  // decided, and not drawn yet
        mutable std::optional<ResumedEpoch> resumed;
        std::vector<bool> served;
        EpochReport report;
    };

    BucketSampler(
        const Residency& node,
        std::uint32_t count,
        BucketSettings settings,
        RedundancyGroups groups);

    Reader& reader_of(std::uint32_t rank);
    Reader& open_epoch(std::uint32_t rank, std::uint64_t epoch);
    [[nodiscard]] std::uint32_t turns() const;
    [[nodiscard]] bool in_bucket(SampleIndex sample) const;
    [[nodiscard]] bool is_removed(SampleIndex sample) const;
    [[nodiscard]] SampleIndex sample_at(
        const Reader& reader, std::uint32_t rank, std::uint32_t turn) const;
    [[nodiscard]] std::optional<Step> next(const Reader& reader, std::uint32_t rank) const;
    [[nodiscard]] std::optional<Step> next_left(const Reader& reader, std::uint32_t rank) const;
    [[nodiscard]] bool may_get_another(const Reader& reader, SampleIndex sample) const;
    void decide_ahead(const Reader& reader, std::uint32_t rank, std::size_t count) const;
    [[nodiscard]] SampleIndex stand_in(const Reader& reader, SampleIndex sample) const;

    void turn_buckets(std::uint64_t epoch);
    void group_alike();
    [[nodiscard]] bool has_progressed();
    [[nodiscard]] double learnt() const;
    void sample_out();
    [[nodiscard]] bool may_go_out(SampleIndex sample) const;
    void recall(std::uint64_t epoch);
    void count_bucket();

    const Residency& node_;
    std::uint32_t count_;
    BucketSettings settings_;
    RedundancyGroups groups_;
    std::vector<Fingerprint> prints_;  // until all are known
    std::vector<bool> printed_;
    std::uint32_t printed_count_ = 0;
    bool has_new_prints_ = false;
    BucketCriteria criteria_;
    std::vector<bool> waiting_;
    std::vector<float> worths_;  // relative_importance()
    std::uint32_t waiting_count_ = 0;
    std::uint32_t bucket_count_;  // without removed copies
    std::map<std::uint32_t, Reader> readers_;

    std::uint64_t turned_for_ = 0;  // epoch + 1
    std::optional<double> quality_;
    std::optional<double> best_quality_;
    std::optional<double> best_loss_;
    double first_loss_ = 0;
    std::uint32_t stagnating_ = 0;
};

}  // namespace stoker::sidecar
