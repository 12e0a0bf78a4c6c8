#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/core/eviction/aggregated_importance.h"
#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/eviction/rank_sketch.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/core/sampling/sampler.h"

namespace stoker::sidecar {

// What the cache is worth to each job, by the uid of its TrainingJob, in any unit. Empty: all jobs
// alike.
using JobWeights = std::map<std::string, double>;

// The job's name where it came through the door of another namespace: no job of the dataset's own
// namespace, or of a third one, is called so. Its uid in JobWeights is "<namespace>/<uid>".
std::string guest_job(std::string_view guest, std::string_view job);

// How unevenly a job reads; see core/eviction/rank_sketch.h.
struct JobSketch {
    std::string job_uid;
    std::uint64_t revision = 0;
    std::vector<float> masses;
    double volume = 0;  // bytes of an epoch, as a share of the dataset
};

// What the samples of one dataset matter to all jobs together that measure it on this node
// (aggregated importance), the eviction policy that goes by it, and how each job reads in that
// order. A job is named "<uid of its TrainingJob>/<its own name>"; without a slash nobody knows its
// uid. Jobs of guests are named by guest_job(), and weigh only what the operator says; what it says
// of one job is divided among all samplers that claim to be of it. Belongs to the loop's thread.
class SharedImportance {
public:
    using SizeOf = AggregatedImportance::SizeOf;

    // With `size_of`, samples matter per byte.
    SharedImportance(std::uint32_t sample_count, SizeOf size_of);

    // The job (local::Begin's, perhaps of one of its ranks) draws by this sampler from now on, or
    // does no more: then it takes what it found important with it.
    void set_active(const Sampler& sampler, std::string_view job, bool active);

    // One of the job's ranks has begun this epoch, was given these, or has told losses of these
    // samples, some of which may not exist.
    void on_epoch(const Sampler& sampler, std::uint64_t epoch);
    void on_drawn(const Sampler& sampler, std::span<const Draw> draws);
    void on_losses(const Sampler& sampler, std::span<const SampleIndex> samples);

    // A job that is not named weighs the mean of those that are.
    void set_weights(JobWeights weights);

    // Once jobs have given the samples importance: keeps what matters most. That is SHADE's cache
    // where a job that replicates is alone, and otherwise what matters most to all jobs together.
    // nullptr: no news. Its owner must go before us, and drops the one before when there is news.
    std::unique_ptr<EvictionPolicy> new_eviction();

    // Are all active jobs guests'? False where there is none.
    [[nodiscard]] bool is_guests_only() const;

    // Sketches of the active jobs whose uid is known and that have ended an epoch.
    [[nodiscard]] std::vector<JobSketch> sketches() const;

private:
    struct ActiveJob {
        std::string name;
        bool full_epoch = true;  // everything passes, whatever it matters
        std::uint64_t revision = 0;
        std::vector<float> ranks;  // when its epoch began, where asking costs more than a look
    };

    // Outlives the job's pauses between epochs.
    struct Reading {
        RankSketch sketch;
        std::uint64_t epoch = 0;
    };

    [[nodiscard]] Bytes bytes_of(SampleIndex sample) const;
    [[nodiscard]] double weight_of(const std::string& job) const;
    [[nodiscard]] std::ptrdiff_t samplers_of(const std::string& uid) const;
    [[nodiscard]] bool counts(const ActiveJob& job) const;
    void weigh_jobs();
    void order_samples();
    void note_epoch(const std::string& job, std::uint64_t epoch);
    [[nodiscard]] bool is_active(const std::string& job) const;
    std::unique_ptr<EvictionPolicy> replicate_eviction(const ReplicateSampler& sampler);
    std::unique_ptr<EvictionPolicy> importance_eviction();
    [[nodiscard]] const ReplicateSampler* lone_replicator() const;
    [[nodiscard]] bool is_full_epoch() const;
    [[nodiscard]] double l_share() const;

    std::uint32_t sample_count_;
    SizeOf size_of_;
    double total_ = 0;  // bytes of the dataset; samples where all are alike
    AggregatedImportance importance_;
    JobWeights weights_;
    std::map<const Sampler*, ActiveJob> active_;
    std::map<std::string, Reading> readings_;  // by job
    RankOrder order_;

    // The engine's; one of them at most.
    ImportanceEviction* eviction_ = nullptr;
    ReplicateEviction* replicate_eviction_ = nullptr;
    const Sampler* scored_by_ = nullptr;  // whose scores the latter has; may be gone
};

}  // namespace stoker::sidecar
