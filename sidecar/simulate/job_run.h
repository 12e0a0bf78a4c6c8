#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/simulate/losses.h"
#include "sidecar/simulate/node.h"
#include "sidecar/simulate/scenario.h"

namespace stoker::simulate {

// Tells a policy how far the jobs are, where it wants to know.
class PolicyFeed {
public:
    virtual ~PolicyFeed() = default;
    virtual void on_epoch(std::size_t job, std::uint64_t epoch) = 0;
    virtual void on_batch(std::size_t job) = 0;

    // After the sampler was told the losses of these.
    virtual void on_losses(std::size_t job, std::span<const SampleIndex> samples) = 0;
};

// A trainer of one rank with its loader, in simulated time: keeps `ahead` batches asked for beyond
// the one that it computes, computes them in order, reports their losses, and begins the next epoch
// when all of the last are computed. Not thread-safe.
class JobRun {
public:
    struct Setting {
        std::size_t job = 0;
        std::string contract;
        sidecar::Sampler* sampler = nullptr;
        Losses* losses = nullptr;    // null: the contract does not listen to any
        PolicyFeed* feed = nullptr;  // may be null
        std::uint64_t samples = 0;
        std::uint32_t epochs = 1;
        std::uint32_t batch = 64;
        std::uint32_t ahead = 2;
        std::uint32_t foresight = 0;  // samples that are fetched before they are drawn
        std::uint32_t plan = 0;       // draws that the node is told of before they are drawn
        double samples_per_second = 1;
        bool reads_all = false;
        TimePoint start{};
    };

    JobRun(Setting setting, Node& node);

    // The next time at which this job does something by itself; nullopt: it waits for the node, or
    // has finished.
    [[nodiscard]] std::optional<TimePoint> next_event() const;

    // Ends the batch that is computed by now, if there is one. To be called for all jobs before any
    // is allowed to go_on(), so that jobs in lock-step see the same node.
    void finish_batch(TimePoint now);

    // Begins an epoch, asks for batches: what the loader does when it has room.
    void go_on(TimePoint now);

    void on_ready(std::uint64_t batch, TimePoint at);

    [[nodiscard]] bool is_finished() const { return epoch_ == setting_.epochs; }

    // With the current epoch as far as it came.
    [[nodiscard]] JobFigures figures() const;

private:
    void begin_epoch(TimePoint now);
    void end_epoch(TimePoint now);
    bool ask(TimePoint now);
    void note_served(const Batch& batch);
    void report_losses(const Batch& batch);
    void compute_next();
    void foresee(TimePoint now);
    void tell_plan();

    Setting setting_;
    Node& node_;
    JobFigures done_;
    EpochFigures current_;
    std::vector<bool> seen_;                // in this epoch, by sample
    std::deque<Batch> outstanding_;         // oldest first
    std::vector<Batch> spare_;              // their memory
    std::optional<TimePoint> computed_at_;  // the oldest batch
    TimePoint idle_since_{};                // when the last batch was computed
    TimePoint epoch_began_{};
    std::vector<SampleIndex> foreseen_;
    std::vector<SampleIndex> served_;
    std::vector<float> seen_losses_;
    std::size_t planned_ = 0;  // of the draws to come, those that the node knows
    std::uint64_t next_batch_ = 0;
    std::uint64_t epoch_ = 0;
    bool in_epoch_ = false;
    bool drained_ = false;  // the sampler has no more for this epoch
    bool room_ = true;      // something happened since the loader last had nothing to do
};

}  // namespace stoker::simulate
