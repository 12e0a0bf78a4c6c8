#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/scenario.h"
#include "sidecar/simulate/virtual_node.h"

namespace stoker::simulate {

// A trainer of one rank with its loader, in virtual time: keeps `ahead` batches asked for beyond
// the one that it computes, computes them in order, reports their losses, and begins the next epoch
// when all of the last are computed. Reads as the client does: what is here at once, the rest when
// the node says where it is. Each batch that is asked for has a connection of its own, as if it
// were a worker's. Not thread-safe; stays where it is.
class JobRun {
public:
    struct Setting {
        const Scenario* scenario = nullptr;  // outlives the run
        std::size_t job = 0;                 // which of its jobs
        local::Begin
            begin;  // of every epoch; of a job with a sampler of its own, the contract only
        sidecar::Sampler* sampler = nullptr;  // of a job whose order the node does not choose
        bool plans = false;                   // it hands over its epoch's order
        Losses* losses = nullptr;             // null: the contract does not listen to any
        std::uint64_t samples = 0;
    };

    JobRun(Setting setting, VirtualNode& node);
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;
    ~JobRun() = default;

    // Whose connection this is.
    [[nodiscard]] static std::size_t job_of(sidecar::ConnectionId connection);

    // The next time at which this job does something by itself; nullopt: it waits for the node, or
    // has finished.
    [[nodiscard]] std::optional<TimePoint> next_event() const;

    // Ends the batch that is computed by now, if there is one. To be called for all jobs before any
    // is allowed to go_on(), so that jobs in lock-step see the same node.
    void finish_batch(TimePoint now);

    // Begins an epoch, asks for batches: what the loader does when it has room. kInvalidArgument:
    // what the sidecar says of the contract's parameters.
    Status go_on(TimePoint now);

    void on_reply(const sidecar::FetchReply& reply, TimePoint now);

    [[nodiscard]] bool is_finished() const { return epoch_ == setting_.scenario->epochs; }

    // With the current epoch as far as it came.
    [[nodiscard]] JobFigures figures() const;

private:
    // One batch that was drawn and is not computed yet.
    struct Batch {
        std::uint64_t number = 0;  // within the job, over all epochs
        std::vector<SampleIndex> samples;
        std::vector<SampleIndex> missing;  // of these, when it was asked for
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
    void request(Batch& batch, TimePoint now);
    void read(std::uint64_t batch, const std::vector<SampleIndex>& samples, TimePoint now);
    void report_losses(const Batch& batch);
    void compute_next();

    Setting setting_;
    VirtualNode& node_;
    JobFigures done_;
    EpochFigures current_;
    std::vector<bool> seen_;                // in this epoch, by sample
    std::deque<Batch> outstanding_;         // oldest first
    std::optional<TimePoint> computed_at_;  // the oldest batch
    TimePoint idle_since_{};                // when the last batch was computed
    TimePoint epoch_began_{};
    std::uint64_t next_batch_ = 0;
    std::uint64_t epoch_ = 0;
    bool in_epoch_ = false;
    bool drained_ = false;  // there is no more to draw in this epoch
    bool room_ = true;      // something happened since the loader last had nothing to do
};

}  // namespace stoker::simulate
