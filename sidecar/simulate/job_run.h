#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/scenario.h"
#include "sidecar/simulate/virtual_node.h"

namespace stoker::simulate {

// A trainer of one rank with its loader, in virtual time: keeps `ahead` batches requested beyond
// the one being computed, computes them in order, reports their losses, and begins the next epoch
// when the last batch is computed. Reads as the client does: stored samples at once, the others
// when the node reports their location. Each requested batch has its own connection, like a
// worker's. Not thread-safe; must not move.
class JobRun {
public:
    struct Setting {
        const Scenario* scenario = nullptr;  // must outlive the run
        std::size_t job = 0;                 // index in the scenario's jobs
        local::Begin
            begin;  // used for every epoch; only the contract counts if the job has its own sampler
        sidecar::Sampler* sampler = nullptr;  // set if the job chooses its own order
        bool plans = false;                   // whether the job sends its epoch's order
        Losses* losses = nullptr;             // null: the contract uses no losses
        std::uint64_t samples = 0;
    };

    JobRun(Setting setting, VirtualNode& node);
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;
    ~JobRun() = default;

    // Index of the job that owns the connection.
    [[nodiscard]] static std::size_t job_of(sidecar::ConnectionId connection);

    // When this job next acts by itself; nullopt: it waits for the node, or has finished.
    [[nodiscard]] std::optional<TimePoint> next_event() const;

    // Finishes the batch that is computed by `now`, if any. Call it for all jobs before go_on() of
    // any, so that jobs in lock-step see the same node.
    void finish_batch(TimePoint now);

    // Begins an epoch or requests batches, as the loader's room permits. kInvalidArgument: the
    // sidecar rejected the contract's parameters.
    Status go_on(TimePoint now);

    void on_reply(const sidecar::FetchReply& reply, TimePoint now);

    [[nodiscard]] bool is_finished() const { return epoch_ == setting_.scenario->epochs; }

    // Samples in batches that are drawn and not yet computed.
    [[nodiscard]] std::uint64_t outstanding_samples() const;

    // Number of completed epochs.
    [[nodiscard]] std::uint64_t epochs_done() const { return epoch_; }

    // Figures of the job's epochs, including the current one so far.
    [[nodiscard]] JobFigures figures() const;

private:
    // One batch that is drawn but not yet computed.
    struct Batch {
        std::uint64_t number = 0;  // within the job, counted over all epochs
        std::vector<SampleIndex> samples;
        std::vector<SampleIndex> missing;  // samples absent when a worker began to read it
        bool begun = false;                // a worker has begun to read it
        std::optional<TimePoint> ready;
    };

    [[nodiscard]] const JobSpec& spec() const { return setting_.scenario->jobs[setting_.job]; }

    [[nodiscard]] std::uint32_t ahead() const { return setting_.scenario->ahead; }

    [[nodiscard]] sidecar::ConnectionId connection_of(std::uint64_t batch) const;
    [[nodiscard]] sidecar::StreamId stream() const;
    Status begin_epoch(TimePoint now);
    Status begin_contract(TimePoint now);
    void begin_own_order(TimePoint now);
    void end_epoch(TimePoint now);
    void leave(TimePoint now);
    bool ask(TimePoint now);
    void draw(Batch& batch, TimePoint now);
    void note_drawn(SampleIndex sample, sidecar::Draw::Kind kind);
    void read_due(TimePoint now);
    void request(Batch& batch, TimePoint now);
    void read(std::uint64_t batch, const std::vector<SampleIndex>& samples, TimePoint now);
    void report_losses(const Batch& batch);
    void compute_next();

    Setting setting_;
    VirtualNode& node_;
    JobFigures done_;
    EpochFigures current_;
    std::vector<bool> seen_;                // by sample: served in this epoch
    std::deque<Batch> outstanding_;         // oldest first
    std::optional<TimePoint> computed_at_;  // when the oldest batch will be computed
    TimePoint idle_since_{};                // when the last computed batch was finished
    TimePoint epoch_began_{};
    std::uint64_t next_batch_ = 0;
    std::uint64_t epoch_ = 0;
    bool in_epoch_ = false;
    bool drained_ = false;  // the epoch has no more samples to draw
    bool room_ = true;      // something happened since the loader last had nothing to do
};

}  // namespace stoker::simulate
