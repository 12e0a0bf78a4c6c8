#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/domain/ids.h"
#include "sidecar/core/residency.h"

// Decides the order in which a job reads, under each sampling contract: one sampler per job and
// node directory. It asks what is stored but neither fetches nor stores. The sidecar's leader and
// `stoker simulate` run the same samplers.
namespace stoker::sidecar {

using domain::SampleIndex;

// One sample handed to the trainer. Label and bytes are always those of `served`.
struct Draw {
    enum class Kind : std::uint8_t {
        kPlain,        // served == requested; no importance
        kImportant,    // an H-request: read from the cache or the origin, never substituted
        kUnimportant,  // an L-request that got the requested sample
        kSubstituted,  // an L-request, or a near-duplicate's, that got another sample
        kRepeated,  // already read in this epoch by this job (with-replacement draws, replication)
    };

    SampleIndex requested = 0;
    SampleIndex served = 0;
    Kind kind = Kind::kPlain;

    bool operator==(const Draw&) const = default;
};

// One rank's totals in one epoch. requested = distinct + repeated (both of the served ids);
// `skipped` counts the samples of the rank's share that the contract left out.
struct EpochReport {
    std::uint64_t epoch = 0;
    std::uint64_t requested = 0;
    std::uint64_t distinct = 0;
    std::uint64_t repeated = 0;
    std::uint64_t substituted = 0;
    std::uint64_t skipped = 0;
    std::uint64_t losses_used = 0;
    std::uint64_t losses_ignored = 0;  // NaN, infinite, unknown id, wrong length
    bool exact_fallback = false;       // all samples were read, because no loss ever arrived

    void count(const Draw& draw) {
        ++requested;
        ++(draw.kind == Draw::Kind::kRepeated ? repeated : distinct);
        substituted += draw.served != draw.requested ? 1 : 0;
    }

    // Counts one loss report, of which `used` losses were usable.
    void count_losses(std::uint64_t used, std::size_t samples, std::size_t losses) {
        losses_used += used;
        losses_ignored += std::max(samples, losses) - used;
    }

    bool operator==(const EpochReport&) const = default;
};

// Records losses by sample in `memory`, using its expect() and record(); ignores spans of different
// lengths. Returns the number recorded.
template <class Memory>
std::uint64_t learn(
    Memory& memory, std::span<const SampleIndex> samples, std::span<const float> losses) {
    if (samples.size() != losses.size()) {
        return 0;
    }
    for (const SampleIndex sample : samples) {
        memory.expect(sample);
    }
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        taken += memory.record(samples[i], losses[i]) ? 1 : 0;
    }
    return taken;
}

// Samplers query a Residency, which outlives them, for what is on the node. Not thread-safe.
// Deterministic: equal seeds and equal calls give equal draws.
class Sampler {
public:
    virtual ~Sampler() = default;

    // The sample is now stored. For samplers that list possible substitutes.
    virtual void on_stored(SampleIndex /*sample*/) {}

    // `rank` (a number in the whole job) begins `epoch`; must precede the rank's other calls. Ranks
    // of a job may be in different epochs. Beginning the current epoch again restarts it; the first
    // `skip` draws are drawn and discarded (a resume in mid-epoch).
    virtual void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) = 0;

    // Does what begin_epoch() does; `served` has one flag per sample that the first `skip` draws
    // returned. These draws differ from a replay if the node now stores other samples, or if the
    // trainer read without a sampler. A contract that repeats samples uses only their number.
    virtual void resume_epoch(
        std::uint32_t rank,
        std::uint64_t epoch,
        std::uint64_t skip,
        const std::vector<bool>& /*served*/) {
        begin_epoch(rank, epoch, skip);
    }

    // Appends at most `count` draws; fewer: the rank's epoch has ended.
    virtual void draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) = 0;

    // Samples that draw() will probably give next, soonest first, for prefetching. May be wrong.
    virtual void foresee(
        std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const = 0;

    // Number of samples that are best fetched together, ahead of need: a group of chunks. 0: samples
    // are fetched in the order of need.
    [[nodiscard]] virtual std::size_t group_samples() const { return 0; }

    // A rank has read these samples. For samplers that count the reads left.
    virtual void on_read(std::span<const SampleIndex> /*samples*/) {}

    // Per-sample training losses by served id, of any length and value; unusable ones are counted
    // and ignored. Contracts without importance ignore all.
    virtual void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) = 0;

    // For each served sample, the largest probability (0..1) that the model gave to a class other
    // than the sample's own, in the visit whose loss on_losses() received last. Lengths, ids and
    // values that do not fit are ignored. Used only by contracts that have a margin.
    virtual void on_p_others(
        std::span<const SampleIndex> /*samples*/, std::span<const float> /*p_others*/) {}

    // Fingerprints of samples (core/sampling/redundancy_groups.h), one per sample; spans of equal
    // length. Used only by contracts that group near-duplicates. Ids may be unknown.
    virtual void on_similarity(
        std::span<const SampleIndex> /*samples*/, std::span<const std::uint64_t> /*hashes*/) {}

    // Accuracy on held-out samples, 0..1, as measured since the last epoch began; once per epoch,
    // before the next one begins. Used only by contracts that need it.
    virtual void on_quality(double /*accuracy*/) {}

    // Share of the job's time, 0..1, spent waiting for data in its last epoch; once per epoch,
    // before the next one begins. Used only by contracts that need it.
    virtual void on_waiting(double /*share*/) {}

    [[nodiscard]] virtual EpochReport report(std::uint32_t rank) const = 0;

    // Relative importance by sample, 0..1: the sample's place among all by rising loss, divided by
    // N (LossRanks). Empty: this contract has no importance. Valid until the next call.
    [[nodiscard]] virtual std::span<const float> relative_importance() const { return {}; }

    // Small state for a checkpoint (no per-sample maps beyond what `restore` needs). Empty: seed,
    // epoch and position, which the trainer has, are the whole state.
    [[nodiscard]] virtual std::string snapshot() const { return {}; }

    virtual bool restore(std::string_view snapshot) { return snapshot.empty(); }

protected:
    // Draws and discards up to `count` samples, in slices; fewer if the epoch ends.
    void skip_draws(std::uint32_t rank, std::uint64_t count) {
        constexpr std::uint64_t kSlice = 2048;
        std::vector<Draw> forgotten;
        while (count > 0) {
            const std::uint64_t wanted = std::min(count, kSlice);
            forgotten.clear();
            draw(rank, wanted, forgotten);
            count = forgotten.size() < wanted ? 0 : count - wanted;
        }
    }
};

}  // namespace stoker::sidecar
