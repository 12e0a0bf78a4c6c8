#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "proto/local/sampling_frames.h"
#include "sidecar/core/demand_book.h"
#include "sidecar/core/residency.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/sampling/sampler_settings.h"
#include "sidecar/core/stream_set.h"
#include "sidecar/engine/rank_plan.h"

namespace stoker::sidecar {

class SharedImportance;

// Makes the samplers of one dataset, and holds what they share.
class SamplerSource {
public:
    virtual ~SamplerSource() = default;

    // A sampler for `rank`, and for the job's other ranks unless is_per_rank(), that asks `node`
    // what is stored, which must outlive it. kInvalidArgument: no such contract, or no such
    // parameter; the message names those that there are. kResourceExhausted: the party has too many
    // samplers of this kind.
    virtual Result<std::unique_ptr<Sampler>> make(
        const Residency& node, const SamplerSettings& settings, std::uint32_t rank) = 0;

    // Do the ranks of a job each have a sampler of their own under this contract?
    [[nodiscard]] virtual bool is_per_rank(const std::string& contract) const = 0;

    // Hears how the jobs read by the samplers.
    virtual SharedImportance& importance() = 0;

    // Told before the samplers. `kept`: it stays (class resident).
    virtual void on_stored(SampleIndex /*sample*/, bool /*kept*/) {}

    // Also when a fetch failed.
    virtual void on_gone(SampleIndex /*sample*/) {}
};

// What comes in a Begin's memfd.
struct BeginState {
    std::vector<std::byte> served;
    std::string snapshot;
};

// Draws for the ranks of all jobs on one dataset and node: holds one sampler a job, tells every
// sampler what is stored, remembers what each rank has drawn and not read yet, and says what to
// fetch ahead.
//
// Bounded whatever clients say: jobs, ranks, outstanding draws and the work of one call. A job
// without ranks keeps its sampler, so that a rank that lost its connection finds it again, until a
// new job needs its slot. Belongs to the loop's thread.
class SamplerService final : public ResidencyListener {
public:
    struct Limits {
        std::size_t samplers = 128;        // of the dataset's own namespace
        std::size_t guest_samplers = 16;   // of one guest
        std::size_t guests_samplers = 64;  // of all guests together

        // Samples of the dataset, summed over the samplers of one guest and of all: each sampler
        // takes some 24 bytes for each of them. Those of `windowed` share a scan and do not count.
        // One sampler may be there in any case.
        std::uint64_t guest_sampler_samples = 8U << 20U;
        std::uint64_t guests_sampler_samples = 16U << 20U;
        std::uint32_t ranks = 65536;
        std::size_t outstanding = std::size_t{1} << 18U;  // draws of a rank that it has not read
        std::size_t guests_outstanding = std::size_t{1} << 20U;  // of all ranks of all guests
        std::size_t horizon = 2048;  // draws that are foreseen and fetched ahead, at least
    };

    // `node` and `source` must outlive the service, which is to hear of all that `node` says.
    SamplerService(
        const Residency& node, std::uint32_t sample_count, SamplerSource& source, Limits limits);

    SamplerService(const Residency& node, std::uint32_t sample_count, SamplerSource& source)
        : SamplerService(node, sample_count, source, Limits{}) {}

    void on_stored(SampleIndex sample, bool kept) override;
    void on_gone(SampleIndex sample) override;

    // Nobody's draw stands for the fetch that brought it: it was on the node before.
    void note_paid(SampleIndex sample) { paid_[sample] = true; }

    // The stream reads for one rank of one job from now on; a stream of the same `sidecar` that did
    // so before gives the rank up. kInvalidArgument: a rank outside its world, and what
    // SamplerSource::make() refuses; kConflict: other ranks of the job have begun with other settings, or another pod
    // draws for the rank; kResourceExhausted: too many jobs. A party's jobs take no slot of other
    // parties' jobs.
    Result<local::Begun> begin(
        StreamId stream,
        const local::Begin& begin,
        const BeginState& state,
        std::uint64_t sidecar = 0,
        Party party = kOwnParty);

    // kInvalidArgument: too many; kConflict: the stream has not begun this epoch, or its rank is
    // drawn for by another stream now; kResourceExhausted: it draws and does not read.
    Result<local::Drawn> draw(StreamId stream, const local::Draw& draw);

    // Losses of streams that read under no contract, or of another epoch, are dropped.
    void on_losses(StreamId stream, const local::Losses& losses);

    // Fingerprints for the job's sampler, whatever epoch they were seen in.
    void on_similarity(StreamId stream, const local::Similarity& similarity);

    // A stream has read these, whatever it reads by.
    void on_read(std::optional<StreamId> stream, std::span<const SampleIndex> samples);

    // kConflict as draw().
    Result<local::EpochTally> report(StreamId stream, std::uint64_t epoch) const;
    Result<local::Snapshot> snapshot(StreamId stream) const;

    // The connection over which the stream drew is gone. Whoever needs what it has not drawn will
    // say so again.
    void leave(StreamId stream);

    // What the stream is going to read, soonest first: drawn and not read yet, then foreseen. Given
    // when it differs from what was given last; nullopt when that still holds.
    std::optional<std::vector<SampleIndex>> new_plan(StreamId stream);

    [[nodiscard]] bool serves(StreamId stream) const { return readers_.contains(stream); }

    [[nodiscard]] std::uint64_t epoch(StreamId stream) const { return readers_.at(stream).epoch; }

    [[nodiscard]] std::size_t job_count() const { return jobs_.size(); }

private:
    struct Job {
        SamplerSettings settings;
        std::unique_ptr<Sampler> sampler;
        std::map<std::uint32_t, StreamId> ranks;         // who draws for each
        std::uint64_t losses = 0;                        // values that came
        std::map<std::string_view, std::uint64_t> told;  // parameter: the epoch of its last value
        std::uint64_t last_used = 0;                     // a running number
    };

    using Counts = std::function<bool(const Job&)>;

    struct Reader {
        std::string job;  // its key
        std::uint64_t sidecar = 0;
        std::uint32_t rank = 0;
        std::uint64_t epoch = 0;
        RankPlan plan;
    };

    [[nodiscard]] std::string key_of(const local::Begin& begin) const;
    Result<Job*> job_for(const local::Begin& begin, const std::string& snapshot, Party party);
    void begin_epoch(
        const Job& job, Reader& reader, const local::Begin& begin, std::vector<bool> served) const;
    [[nodiscard]] std::vector<SampleIndex> samples_of(std::span<const std::uint64_t> ids) const;
    static void tell_of_last_epoch(Job& job, const local::Begin& begin);
    Result<std::unique_ptr<Sampler>> make_sampler(
        const SamplerSettings& settings, std::uint32_t rank);
    bool forget_idle(const Counts& counts);
    Status free_slot(std::size_t slots, const Counts& counts);
    Status free_slots(const SamplerSettings& settings);
    [[nodiscard]] std::size_t outstanding_left(const Reader& reader) const;
    Result<const Reader*> reader_of(StreamId stream, std::uint64_t epoch) const;
    local::Drawn answer_of(const Reader& reader, const std::vector<Draw>& draws);

    const Residency& node_;
    std::uint32_t sample_count_;
    SamplerSource& source_;
    Limits limits_;
    std::vector<bool> paid_;  // somebody's draw stands for the fetch that brought the bytes
    std::map<std::string, Job> jobs_;  // by key_of()
    std::map<StreamId, Reader> readers_;
    std::uint64_t uses_ = 0;
};

}  // namespace stoker::sidecar
