#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// The last loss of every sample of one job, and its rank among all as of the last rebuild: the
// relative importance RIV = rank/N of iCACHE (HPCA 2023, multi-job). Ranks do not depend on the
// losses' scale or decay; equal losses share the middle rank; an unmeasured sample has 1.0, because
// it may be important.
//
// Ranks are rebuilt in bounded slices while reading goes on: start(), then advance() until it
// returns true. Until then ranks() holds the previous ranks, which the last slices replace sample
// by sample. A rebuild costs about four steps per sample, 10 to 40 ns each. Memory: 12 bytes per
// sample, and 1 MB during a rebuild. Not thread-safe. Deterministic.
class LossRanks {
public:
    explicit LossRanks(std::uint32_t count);

    // Hint: the loss will be recorded soon; prefetches its place into the processor's cache.
    // Accepts any id.
    void expect(SampleIndex sample) const {
        if (sample < losses_.size()) {
            __builtin_prefetch(&losses_[sample], 1);
        }
    }

    // Records a loss. False: unknown sample, NaN or infinite; nothing has changed.
    bool record(SampleIndex sample, float loss);

    // The sample's last loss; NaN: it has none yet. `sample` must be below count().
    [[nodiscard]] float loss(SampleIndex sample) const { return losses_[sample]; }

    [[nodiscard]] bool knows(SampleIndex sample) const {
        return losses_[sample] == losses_[sample];
    }

    [[nodiscard]] std::uint32_t known() const { return known_; }

    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(losses_.size()); }

    // Rank by sample, 0..1. The span's address and length never change.
    [[nodiscard]] std::span<const float> ranks() const { return ranks_; }

    // Number of complete rebuilds of the ranks.
    [[nodiscard]] std::uint64_t revision() const { return revision_; }

    // Starts a rebuild from the current losses, unless one is running.
    void start();

    // Advances by about `steps` steps (a bucket that is sorted at once may overshoot by 4096).
    // True: no rebuild is running any more.
    bool advance(std::uint64_t steps);

    // Bytes of this object and of its buffers.
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    enum class Phase : std::uint8_t { kIdle, kCopy, kPlace, kSort, kCount, kRewrite, kPublish };

    void step_phase(std::uint64_t& steps);
    void copy(std::uint64_t& steps);
    void lay_out_buckets();
    void place(std::uint64_t& steps);
    void sort(std::uint64_t& steps);
    void count_low_halves(std::uint64_t& steps);
    void rewrite(std::uint64_t& steps);
    void publish(std::uint64_t& steps);
    void publish_some(std::uint32_t samples);
    void enter(Phase phase);
    [[nodiscard]] float middle_rank(std::uint32_t below, std::uint32_t key) const;
    [[nodiscard]] std::uint32_t bucket_begin(std::uint32_t bucket) const;

    std::vector<float> losses_;
    std::vector<float> ranks_;
    std::vector<std::uint32_t> keys_;   // keys of the losses, in the same order; sorted in place
    std::vector<std::uint32_t> heads_;  // by the upper half of the key, during a rebuild
    std::vector<std::uint32_t> ends_;
    Phase phase_ = Phase::kIdle;
    std::uint32_t cursor_ = 0;  // a sample, or an index in keys_
    std::uint32_t bucket_ = 0;
    std::uint32_t low_ = 0;  // the lower half of a key, in rewrite()
    std::uint32_t known_ = 0;
    std::uint64_t revision_ = 0;
};

}  // namespace stoker::sidecar
