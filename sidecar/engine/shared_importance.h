#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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

// Value of the cache to each job, in any unit, by the uid of its TrainingJob. Empty: all jobs count
// the same.
using JobWeights = std::map<std::string, double>;

// Name of a job that connected through another namespace's guest socket. It differs from every job
// name of the owner and of other namespaces. Its uid in JobWeights is "<namespace>/<uid>".
std::string guest_job(std::string_view guest, std::string_view job);

// How unevenly a job reads; see core/eviction/rank_sketch.h.
struct JobSketch {
    std::string job_uid;
    std::uint64_t revision = 0;
    std::vector<float> masses;
    double volume = 0;  // bytes read per epoch / bytes of the dataset
};

// Combines the importance that all jobs on this node measured for the samples of one dataset
// (aggregated importance). Owns the order for the eviction policy and measures how each job reads
// in that order. A job is named "<uid of its TrainingJob>/<its own name>"; without a slash its uid
// is unknown. guest_job() names the jobs of guests; their weight comes from the operator alone.
// Samplers that claim the same guest job divide its weight. Use it on the loop's thread.
class SharedImportance {
public:
    using SizeOf = AggregatedImportance::SizeOf;

    // With `size_of`, importance is per byte.
    SharedImportance(std::uint32_t sample_count, SizeOf size_of);

    // Starts or stops counting the job with this sampler. `job`: the name in a rank's Begin frame.
    // A job that stops takes its importance values with it.
    void set_active(const Sampler& sampler, std::string_view job, bool active);

    // One of the job's ranks began this epoch, drew these samples, or reported losses of these
    // samples. Ids may be unknown.
    void on_epoch(const Sampler& sampler, std::uint64_t epoch);
    void on_drawn(const Sampler& sampler, std::span<const Draw> draws);
    void on_losses(const Sampler& sampler, std::span<const SampleIndex> samples);

    // A job without a weight gets the mean of the given weights.
    void set_weights(JobWeights weights);

    // Whether the own namespace's streams without a contract read the dataset, too.
    void set_others_read(bool others_read) { others_read_ = others_read; }

    // The rule that chooses the policy for all jobs of the node together, in the sidecar and in
    // `stoker simulate`. Returns a new eviction policy once jobs have measured importance: SHADE's
    // cache if one replicating job is the only reader, otherwise one that keeps the samples with
    // the highest aggregated importance. Call it when a job begins an epoch; the order in which
    // jobs under contracts begin does not matter. nullptr: no change. The caller drops the previous
    // policy when it gets a new one, and destroys the last one before this object.
    std::unique_ptr<EvictionPolicy> new_eviction();

    // Whether all active jobs belong to guests. False if no job is active.
    [[nodiscard]] bool is_guests_only() const;

    // Sketches of the active jobs with a known uid and at least one finished epoch.
    [[nodiscard]] std::vector<JobSketch> sketches() const;

private:
    struct ActiveJob {
        std::string name;
        bool full_epoch = true;  // reads all samples, whatever their importance
        std::uint64_t revision = 0;
        std::vector<float>
            ranks;  // sample ranks, cached at the epoch's beginning if computing them is expensive
    };

    // A job's read counts; kept between epochs, while the job is inactive.
    struct Reading {
        RankSketch sketch;
        std::uint64_t epoch = 0;
    };

    [[nodiscard]] Bytes bytes_of(SampleIndex sample) const;
    [[nodiscard]] double weight_of(const std::string& job) const;
    [[nodiscard]] std::ptrdiff_t samplers_of(const std::string& uid) const;
    [[nodiscard]] bool counts(const ActiveJob& job) const;
    void weigh_jobs();
    void note_ranks(const Sampler& sampler, ActiveJob& job);
    void order_samples();
    void note_epoch(const std::string& job, std::uint64_t epoch);
    [[nodiscard]] bool is_active(const std::string& job) const;
    std::unique_ptr<EvictionPolicy> replicate_eviction(const ReplicateSampler& sampler);
    std::unique_ptr<EvictionPolicy> importance_eviction();
    [[nodiscard]] const ReplicateSampler* lone_replicator() const;
    [[nodiscard]] const ReplicateSampler* evicts_for(const Sampler& sampler) const;
    [[nodiscard]] bool is_full_epoch() const;
    [[nodiscard]] double l_share() const;

    std::uint32_t sample_count_;
    SizeOf size_of_;
    double total_ = 0;  // bytes of the dataset; number of samples if all sizes are equal
    AggregatedImportance importance_;
    JobWeights weights_;
    std::map<const Sampler*, ActiveJob> active_;
    std::set<const Sampler*> unmeasured_;  // active own jobs that measure no importance
    bool others_read_ = false;
    std::map<std::string, Reading> readings_;  // by job
    RankOrder order_;

    // The policies, owned by the engine; at most one of the two pointers is set.
    ImportanceEviction* eviction_ = nullptr;
    ReplicateEviction* replicate_eviction_ = nullptr;
    std::shared_ptr<const ReadsLeft> counted_;  // of the sampler that replicate_eviction_ is for
};

}  // namespace stoker::sidecar
