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

// What a job reads next, under each sampling contract. A sampler is the pure mind behind one job on
// one node directory: it decides an order and asks what is stored, but neither fetches nor stores.
// The sidecar's leader and `stoker simulate` run the same ones.
namespace stoker::sidecar {

using domain::SampleIndex;

// One sample handed to the trainer. Its label and bytes are those of `served`, always.
struct Draw {
    enum class Kind : std::uint8_t {
        kPlain,        // served == requested, and nothing more to say of it
        kImportant,    // an H-request: read from the cache or the origin, never substituted
        kUnimportant,  // an L-request that got the sample it asked for
        kSubstituted,  // an L-request, or a near-duplicate's, that got another sample
        kRepeated,  // read before in this epoch by this job (with-replacement draws, replication)
    };

    SampleIndex requested = 0;
    SampleIndex served = 0;
    Kind kind = Kind::kPlain;

    bool operator==(const Draw&) const = default;
};

// What one rank got in one epoch. requested = distinct + repeated (both of the served ids);
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
    bool exact_fallback = false;       // read in full, since no loss ever came

    void count(const Draw& draw) {
        ++requested;
        ++(draw.kind == Draw::Kind::kRepeated ? repeated : distinct);
        substituted += draw.served != draw.requested ? 1 : 0;
    }

    // `used` of so many samples and losses that came together.
    void count_losses(std::uint64_t used, std::size_t samples, std::size_t losses) {
        losses_used += used;
        losses_ignored += std::max(samples, losses) - used;
    }

    bool operator==(const EpochReport&) const = default;
};

// Tells `memory` (its expect() and record()) losses by sample; spans of different lengths are
// ignored. How many it took.
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

// What is on the node is known to a Residency, which outlives the samplers that ask it. Not
// thread-safe. Deterministic: equal seeds and equal calls give equal draws.
class Sampler {
public:
    virtual ~Sampler() = default;

    // The sample is stored from now on. For those that list what they may give in another's place.
    virtual void on_stored(SampleIndex /*sample*/) {}

    // `rank`, of the whole job, begins `epoch`, before any other call for it. Ranks of a job may be
    // at different epochs. Beginning the current epoch again restarts it; `skip` draws are drawn and
    // forgotten (a resume in mid-epoch).
    virtual void begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) = 0;

    // As begin_epoch(), by one who knows which samples the first `skip` draws gave, one flag each:
    // with other samples on the node, or where the trainer read alone for a while, they are not
    // those that would be drawn and forgotten. A contract that repeats samples goes by the number.
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

    // Per-sample training losses by served id; any length, any value: what cannot be used is
    // counted and ignored. Contracts without importance ignore all.
    virtual void on_losses(
        std::uint32_t rank,
        std::span<const SampleIndex> samples,
        std::span<const float> losses) = 0;

    // Fingerprints of samples (core/sampling/redundancy_groups.h), each once; equally long. Only
    // contracts that group near-duplicates listen. Samples that there are not, too.
    virtual void on_similarity(
        std::span<const SampleIndex> /*samples*/, std::span<const std::uint64_t> /*hashes*/) {}

    // Accuracy on held-out samples, 0..1, as measured since the last epoch began; once an epoch,
    // before the next one begins. Only contracts that steer by it listen.
    virtual void on_quality(double /*accuracy*/) {}

    // Share of the job's time, 0..1, that it waited for data in its last epoch; once an epoch,
    // before the next one begins. Only contracts that steer by it listen.
    virtual void on_waiting(double /*share*/) {}

    [[nodiscard]] virtual EpochReport report(std::uint32_t rank) const = 0;

    // Relative importance by sample, 0..1: rank_j(i)/N (RIV, algorithms of iCACHE multi-job).
    // Empty: this contract knows no importance. Valid until the next call.
    [[nodiscard]] virtual std::span<const float> relative_importance() const { return {}; }

    // Small state for a checkpoint (no per-sample maps beyond what `restore` needs), and back.
    // Empty: seed, epoch and position, which the trainer has, are the whole state.
    [[nodiscard]] virtual std::string snapshot() const { return {}; }

    virtual bool restore(std::string_view snapshot) { return snapshot.empty(); }

protected:
    // Draws and forgets as many, in slices; fewer where the epoch ends.
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
