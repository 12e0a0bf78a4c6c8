#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/prng.h"
#include "common/base/result.h"
#include "sidecar/core/eviction/reads_left.h"
#include "sidecar/core/sampling/listed_epoch.h"
#include "sidecar/core/sampling/replicate_scores.h"
#include "sidecar/core/sampling/sampler_settings.h"

namespace stoker::sidecar {

// The contract `replicate` (SHADE, FAST 2023): the first `warmupEpochs` epochs (1 by default) are
// plain shuffles; after them, samples are drawn with replacement by their scores, and residents are
// read `replication` times in place of other samples. Replication reduces coverage: see
// EpochReport::distinct.
//
// Ranks share an epoch's draws (adaptive sampling, PADS). While validation improves ("aggressive")
// they are dealt out by multiplicity: every rank gets an equal share of the most drawn samples, and
// all copies of a sample go to one rank, hence to one node. Otherwise they are dealt in random
// order. All ranks' draws follow from seed, epoch and scores; ranks on other nodes draw alike as
// far as their scores agree.
//
// The order is made for the node to fetch each distinct sample once: residents first, then the
// others in blocks, with all copies of a sample in one block. In a block, the ranks that have begun
// an epoch here have no more repeated draws than the node has residents, so the samples that wait
// for a copy need at most half of the residents' room; the eviction policy keeps them
// (reads_left()).
//
// Differences from the released code: scores go to the served ids, not to positions of another
// order; the ranks' shares do not overlap in the aggressive mode; residency is read once per epoch
// instead of once per sample; draws of other samples than residents come in blocks.
//
// 4 bytes per sample for the scores, 4 for the ranks once requested, 4 for the orders of all local
// ranks together (8 until the last of them has begun its epoch), 1 for the reads left, 1 bit per
// rank for its reads.
class ReplicateSampler final : public Sampler {
public:
    // kInvalidArgument names the parameter.
    static Result<std::unique_ptr<ReplicateSampler>> create(
        const Residency& node, std::uint32_t count, const SamplerSettings& settings);

    // Change of the validation accuracy in the last epoch.
    void on_validation(double accuracy_change);

    // Does what on_validation() does, from the accuracy itself.
    void on_quality(double accuracy) override;

    void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) override;
    void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) override;
    void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const override;
    void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) override;
    void on_read(std::span<const SampleIndex> samples) override;
    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;
    [[nodiscard]] std::span<const float> relative_importance() const override;

    // For the eviction policy (ReplicateEviction::on_score), after on_losses().
    [[nodiscard]] float score(SampleIndex sample) const { return scores_.score(sample); }

    // The reads left, for the eviction policy. Counts each local rank's epoch from its beginning; a
    // rank that begins the same epoch again is not counted twice. Never null.
    [[nodiscard]] std::shared_ptr<const ReadsLeft> reads_left() const { return reads_left_; }

    [[nodiscard]] bool is_aggressive() const;

    // State of the scores (ReplicateScores). A restored epoch is drawn anew from it: draws with
    // replacement promise no particular sample.
    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

private:
    struct Rank : ListedEpoch {
        std::uint64_t begun = 0;  // epoch + 1 of the last begin
        std::vector<bool> read;   // by sample: read in this epoch
    };

    ReplicateSampler(const Residency& node, std::uint32_t count, const SamplerSettings& settings);

    std::vector<SampleIndex>& epoch_draws(std::uint64_t epoch);
    std::vector<SampleIndex> take_part(std::uint32_t rank, std::uint64_t epoch);
    [[nodiscard]] bool all_have_begun(std::uint64_t epoch) const;
    void draw_epoch(std::uint64_t epoch);
    void arrange(std::vector<SampleIndex>& part, std::uint32_t rank, std::uint64_t epoch) const;
    [[nodiscard]] std::uint32_t blocks_of(std::span<const SampleIndex> draws) const;
    void count_reads(std::span<const SampleIndex> order, std::uint64_t epoch, bool moves_on);

    const Residency& node_;
    SamplerSettings settings_;
    std::uint64_t warmup_epochs_;
    ReplicateScores scores_;
    std::deque<double> accuracy_changes_;         // changes of the last three epochs
    std::optional<double> accuracy_;              // accuracy of the last epoch
    std::optional<std::uint64_t> drawn_epoch_;    // the latest epoch that was drawn
    std::vector<SampleIndex> draws_;              // until all ranks have begun drawn_epoch_
    std::uint32_t blocks_ = 1;                    // number of blocks in draws_
    std::optional<std::uint64_t> counted_epoch_;  // the epoch last begun in reads_left_
    std::shared_ptr<ReadsLeft> reads_left_;
    std::map<std::uint32_t, Rank> ranks_;  // ranks that have begun an epoch here; possibly all
    mutable std::vector<float> importance_;
    mutable bool importance_stale_ = true;
};

}  // namespace stoker::sidecar
