#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "sidecar/core/sampling/resumed_epoch.h"
#include "sidecar/core/sampling/sample_buckets.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/sampling/share_walk.h"

namespace stoker::sidecar {

// The contract `importance` of family IOWA (docs/design/sampling-importance.md): reads the samples
// in the bucket (SampleBuckets) once per epoch. Near-duplicates are left out or substitute for one
// another (RedundancyGroups).
//
// All ranks of a node share the bucket. All ranks of a job, on whatever nodes, read equally many
// samples (SamplerSettings::draws_of_epoch). The first rank to begin an epoch moves samples into
// the bucket and out of it; ranks that still draw the previous epoch keep that epoch's samples.
// Memory as in SampleBuckets. Deterministic. Not thread-safe.
class BucketSampler final : public Sampler {
public:
    // kInvalidArgument names the parameter.
    static Result<std::unique_ptr<BucketSampler>> create(
        const Residency& node,
        std::uint32_t count,
        const SamplerSettings& settings,
        BucketOptions options = {});

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
    void on_p_others(
        std::span<const SampleIndex> samples, std::span<const float> p_others) override;
    [[nodiscard]] EpochReport report(std::uint32_t rank) const override;

    // Returns SampleBuckets::worths().
    [[nodiscard]] std::span<const float> relative_importance() const override {
        return buckets_.worths();
    }

    [[nodiscard]] std::string snapshot() const override;
    bool restore(std::string_view snapshot) override;

    // Groups near-duplicates among all fingerprints received, from the next epoch on. Ignored if
    // copies are kept.
    void on_similarity(
        std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes) override {
        buckets_.on_similarity(samples, hashes);
    }

    void on_quality(double quality) override { buckets_.on_quality(quality); }

    void on_waiting(double share) override { buckets_.on_waiting(share); }

    [[nodiscard]] const SampleBuckets& buckets() const { return buckets_; }

private:
    struct Reader : RankEpoch {
        explicit Reader(const ShareWalk& share)
            : walk(share) {}

        ShareWalk walk;
        bool begun = false;
        bool full = true;
        std::shared_ptr<const std::vector<bool>> reads;  // SampleBuckets::reads() of its epoch
        std::deque<ShareWalk::Step> ahead;               // decided but not drawn yet
    };

    BucketSampler(
        const Residency& node,
        std::uint32_t count,
        const SamplerSettings& settings,
        BucketOptions options);

    Reader& open_epoch(std::uint32_t rank, std::uint64_t epoch);
    void restart(Reader& reader, std::optional<ResumedEpoch> rest = std::nullopt) const;
    std::optional<ShareWalk::Step> next(Reader& reader) const;
    void decide_ahead(Reader& reader, std::size_t count) const;
    [[nodiscard]] SampleIndex stand_in(const Reader& reader, SampleIndex sample) const;

    const Residency& node_;
    std::uint32_t count_;
    SamplerSettings settings_;
    SampleBuckets buckets_;
    // Mutable: foresee() decides ahead, which does not change later results.
    mutable std::map<std::uint32_t, Reader> readers_;
};

}  // namespace stoker::sidecar
