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
#include "sidecar/engine/window_sharing.h"

namespace stoker::sidecar {

class SharedImportance;

// Creates the samplers of one dataset and owns the state that they share.
class SamplerSource {
public:
    virtual ~SamplerSource() = default;

    // A sampler for `rank`, and for the job's other ranks unless is_per_rank(). `node` reports what
    // is stored and must outlive it. kInvalidArgument: unknown contract or parameter; the message
    // lists the known ones. kResourceExhausted: the party has too many samplers of this kind.
    virtual Result<std::unique_ptr<Sampler>> make(
        const Residency& node, const SamplerSettings& settings, std::uint32_t rank) = 0;

    // Whether each rank of a job has its own sampler under this contract.
    [[nodiscard]] virtual bool is_per_rank(const std::string& contract) const = 0;

    // Receives the jobs' draws and losses.
    virtual SharedImportance& importance() = 0;

    // Called before the samplers' on_stored(). `kept`: the sample is a resident.
    virtual void on_stored(SampleIndex /*sample*/, bool /*kept*/) {}

    // Called when the sample has left the node, and when its fetch failed.
    virtual void on_gone(SampleIndex /*sample*/) {}
};

// Contents of a Begin's memfd.
struct BeginState {
    std::vector<std::byte> served;
    std::string snapshot;
};

// Draws samples for the ranks of all jobs on one dataset and node. Owns one sampler per job, tells
// every sampler what is stored, tracks each rank's unread draws, and plans what to fetch ahead.
//
// Bounds jobs, ranks, outstanding draws and the work per call, whatever clients send. A job without
// ranks keeps its sampler until a new job needs its slot, so a rank that reconnects finds it again.
// Use it on the loop's thread.
class SamplerService final : public ResidencyListener {
public:
    struct Limits {
        std::size_t samplers = 128;        // for jobs of the dataset's own namespace
        std::size_t guest_samplers = 16;   // for one guest (another namespace)
        std::size_t guests_samplers = 64;  // for jobs of all guests together

        // Limits of samplers x samples of the dataset, for one guest and for all guests together: a
        // sampler needs some 24 bytes for each sample. `windowed` samplers share a scan and do not
        // count. One sampler is always permitted.
        std::uint64_t guest_sampler_samples = 8U << 20U;
        std::uint64_t guests_sampler_samples = 16U << 20U;
        std::uint32_t ranks = 65536;
        std::size_t outstanding = std::size_t{1} << 18U;         // unread draws of one rank
        std::size_t guests_outstanding = std::size_t{1} << 20U;  // of all ranks of all guests
        std::size_t horizon = 2048;  // minimum number of draws foreseen and fetched ahead
    };

    // `node` and `source` must outlive the service, which must be notified of all changes to
    // `node`. `record_bytes`: a sample's size on the node.
    SamplerService(
        const Residency& node,
        std::uint32_t sample_count,
        SamplerSource& source,
        Limits limits,
        UnreadDraws::SizeOf record_bytes = [](SampleIndex /*sample*/) { return Bytes{1}; });

    SamplerService(const Residency& node, std::uint32_t sample_count, SamplerSource& source)
        : SamplerService(node, sample_count, source, Limits{}) {}

    void on_stored(SampleIndex sample, bool kept) override;
    void on_gone(SampleIndex sample) override;

    // Marks a sample that was on the node before: no draw is charged for its fetch.
    void note_paid(SampleIndex sample) { paid_[sample] = true; }

    // The stream now reads for one rank of one job; another stream of the same `sidecar` loses the
    // rank. kInvalidArgument: a rank outside its world, or an error of SamplerSource::make();
    // kConflict: other ranks of the job have begun with other settings, or another pod draws for
    // the rank; kResourceExhausted: too many jobs. A party's jobs take no slot of other parties'
    // jobs.
    Result<local::Begun> begin(
        StreamId stream,
        const local::Begin& begin,
        const BeginState& state,
        std::uint64_t sidecar = 0,
        Party party = kOwnParty);

    // Draws samples. kInvalidArgument: too many; kConflict: the stream has not begun this epoch, or
    // another stream draws for its rank now; kResourceExhausted: too many unread draws.
    Result<local::Drawn> draw(StreamId stream, const local::Draw& draw);

    // Passes losses to the sampler; ignores those without a contract or of another epoch.
    void on_losses(StreamId stream, const local::Losses& losses);

    // Receives the losses that on_losses() accepts for a job that also has ranks on other nodes.
    // The list may contain ids that the dataset does not have.
    using OnLosses = std::function<void(
        const std::string& job,
        std::uint64_t epoch,
        std::span<const SampleIndex> samples,
        std::span<const float> losses)>;

    void set_on_losses(OnLosses on_losses) { on_losses_ = std::move(on_losses); }

    // The newest epoch of the job's ranks that read here; `job`: the name that OnLosses passes.
    // nullopt: no rank of the job reads here, or all ranks do.
    [[nodiscard]] std::optional<std::uint64_t> shared_epoch(const std::string& job) const;

    // Passes on one report that the job's ranks on another node sent; the sampler treats it as
    // on_losses(). Ignored unless its epoch is shared_epoch() or next to it.
    void on_losses_elsewhere(
        const std::string& job,
        std::uint64_t epoch,
        std::span<const SampleIndex> samples,
        std::span<const float> losses);

    // Passes sample fingerprints to the job's sampler, whichever epoch they were computed in.
    void on_similarity(StreamId stream, const local::Similarity& similarity);

    // The stream has read these samples, under a contract or not.
    void on_read(std::optional<StreamId> stream, std::span<const SampleIndex> samples);

    // The epoch's counts for the stream's rank. kConflict as in draw().
    Result<local::EpochTally> report(StreamId stream, std::uint64_t epoch) const;
    Result<local::Snapshot> snapshot(StreamId stream) const;

    // Call when the stream's connection has ended.
    void leave(StreamId stream);

    // The samples that the stream will read, soonest first: unread draws, then foreseen ones, as a
    // change of the plan in force, which has `in_force` positions. nullopt: unchanged since the last
    // call.
    std::optional<PlanTail> new_plan(StreamId stream, std::uint32_t in_force);

    [[nodiscard]] bool serves(StreamId stream) const { return readers_.contains(stream); }

    [[nodiscard]] std::uint64_t epoch(StreamId stream) const { return readers_.at(stream).epoch; }

    // Whether the stream's contract has samples fetched in groups (Sampler::group_samples()).
    [[nodiscard]] bool reads_groups(StreamId stream) const {
        return jobs_.at(readers_.at(stream).job).sampler->group_samples() > 0;
    }

    [[nodiscard]] std::size_t job_count() const { return jobs_.size(); }

    [[nodiscard]] const WindowSharing& sharing() const { return sharing_; }

private:
    struct Job {
        SamplerSettings settings;
        std::unique_ptr<Sampler> sampler;
        std::map<std::uint32_t, StreamId> ranks;         // by rank: the stream that draws for it
        std::uint64_t losses = 0;                        // loss values received
        std::map<std::string_view, std::uint64_t> told;  // parameter: epoch of its last value
        std::uint64_t last_used = 0;                     // sequence number of the last use
    };

    // Whether some of the job's ranks do not read here.
    static bool is_spread(const Job& job) { return job.ranks.size() < job.settings.ranks; }

    using Counts = std::function<bool(const Job&)>;

    struct Reader {
        std::string job;  // key in jobs_
        std::uint64_t sidecar = 0;
        std::uint32_t rank = 0;
        std::uint64_t epoch = 0;
        std::string job_name;     // name of the job, without the rank
        bool is_sharing = false;  // counts in sharing()
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

    void join_sharing(const std::string& job) {
        if (sharing_.join(job)) {
            for (const auto& [stream, reader] : readers_) {
                if (reader.is_sharing) {
                    sharing_.track(reader.plan.unread_counts(), node_);
                }
            }
        }
    }

    void erase(std::map<StreamId, Reader>::iterator reader) {
        if (reader->second.is_sharing) {
            sharing_.leave(reader->second.job_name, reader->second.plan.unread_counts());
        }
        readers_.erase(reader);
    }

    [[nodiscard]] std::size_t outstanding_left(const Reader& reader) const;
    Result<const Reader*> reader_of(StreamId stream, std::uint64_t epoch) const;
    local::Drawn answer_of(const Reader& reader, const std::vector<Draw>& draws);

    const Residency& node_;
    std::uint32_t sample_count_;
    SamplerSource& source_;
    Limits limits_;
    std::vector<bool> paid_;           // a draw already counts as paying for the sample's fetch
    std::map<std::string, Job> jobs_;  // by key_of()
    std::map<StreamId, Reader> readers_;
    std::uint64_t uses_ = 0;
    WindowSharing sharing_;
    OnLosses on_losses_ = [](auto&&...) {};
};

}  // namespace stoker::sidecar
