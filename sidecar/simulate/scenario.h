#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/domain/ids.h"

// Input of `stoker simulate`: one dataset on one node, the jobs that read it, and an origin. Plain
// values; check_scenario() validates them.
namespace stoker::simulate {

// The samples and their payload sizes.
struct DatasetSpec {
    std::uint64_t samples = 20'000;
    Bytes mean_bytes = kib(110);
    double sigma = 0;                  // of the logarithm of the sizes; 0: equal sizes
    std::vector<std::uint64_t> sizes;  // of a manifest; if not empty, replaces the three above
};

// Record bytes that the node may keep. `window_share` of them is the window, the rest is resident.
struct CacheSpec {
    double share = 0.2;  // of the dataset's record bytes
    Bytes bytes{};       // if not zero, replaces `share`
    double window_share = 0;
    std::string policy;  // of policies(); empty: as the sidecar chooses for the contracts
    std::map<std::string, double> parameters;  // of the policy; unset ones have defaults
};

struct OriginSpec {
    Duration latency = std::chrono::milliseconds{5};
    Bytes bytes_per_second = mib(200);
    std::uint32_t requests_max = 32;  // in flight
};

// The samples that a job has read, in order, by epoch. An epoch may be empty.
struct RecordedReads {
    std::vector<std::vector<domain::SampleIndex>> epochs;
    bool plans = false;  // the job's trainer sends the order of each epoch ahead
};

// One job: one rank that computes at `speed` times the scenario's rate.
struct JobSpec {
    std::string contract = "exact";
    double speed = 1;
    Duration start{};                          // relative to the simulation's start
    std::map<std::string, double> parameters;  // of the contract, by name; unset ones have defaults
    // If set, the job reads these instead of a new random order every epoch. Contract exact only.
    std::shared_ptr<const RecordedReads> recorded{};
};

struct Scenario {
    DatasetSpec dataset;
    CacheSpec cache;
    OriginSpec origin;
    std::vector<JobSpec> jobs = {JobSpec{}};
    std::uint32_t epochs = 3;
    std::uint32_t discard = 1;  // number of first epochs excluded from the means
    std::uint32_t batch = 64;
    std::uint32_t ahead = 2;  // batches that a loader requests in advance

    // Number of the `ahead` batches that a loader's workers read in advance. The samples of the
    // others are chosen, but no worker reads them yet. `ahead` or more: workers read all of them at
    // once.
    std::uint32_t read_ahead = UINT32_MAX;
    double samples_per_second = 2000;  // computed by a job of speed 1
    double loss_correlation = 0;       // of importance between jobs, 0..1
    bool until_first_ends = false;     // the fastest job's last epoch ends the simulation
    std::uint64_t seed = 1;
};

// Totals of one job in one epoch.
struct EpochFigures {
    std::uint64_t epoch = 0;
    bool complete = false;  // false: the simulation ended earlier
    std::uint64_t requested = 0;
    std::uint64_t hits = 0;      // of the requested: those fetched for an earlier read, of any job
    std::uint64_t distinct = 0;  // different samples served; counted here, not by the sampler
    std::uint64_t repeated = 0;  // requested - distinct
    std::uint64_t substituted = 0;
    std::uint64_t origin_requests = 0;
    std::uint64_t origin_samples = 0;  // samples fetched for these reads
    std::uint64_t refill_samples = 0;  // of these: fetched in the background
    Bytes origin_bytes{};              // bytes of all these samples
    Duration time{};                   // from the first request to the end of the last batch
    Duration waited{};                 // of this time: waiting for data
};

struct JobFigures {
    std::string contract;
    std::vector<EpochFigures> epochs;
};

// The part of a run in which every job has completed its first `discard` epochs and none has ended.
// An epoch's own figures do not add up over jobs of unequal speeds: their epochs are different
// spans of time.
struct SteadyPart {
    Duration time{};
    std::uint64_t fetched_samples = 0;            // for all jobs
    std::vector<std::uint64_t> computed_samples;  // by job

    // Lowest ratio over the jobs: the job's rate to the rate that its speed asks for
    // (`samples_per_second` at speed 1).
    [[nodiscard]] double speed_reached(const Scenario& scenario) const;
};

struct Outcome {
    std::uint64_t samples = 0;
    Bytes dataset_bytes{};
    Bytes resident_bytes{};  // capacity for residents
    Bytes window_bytes{};
    std::vector<JobFigures> jobs;
    std::optional<SteadyPart> steady;  // unset: there was no such part
};

// Means over a job's complete epochs from `discard` on.
struct JobMeans {
    std::uint32_t epochs = 0;  // number of epochs in the means
    double requested = 0;      // of the dataset's samples
    double hit_ratio = 0;      // hits of requested
    double coverage = 0;       // distinct of the dataset's samples
    double substituted = 0;    // share of the requested samples
    double origin_requests = 0;
    double origin_samples = 0;  // of the dataset's samples
    double origin_bytes = 0;    // of the dataset's bytes
    double seconds = 0;
    double waited_seconds = 0;
};

JobMeans means_of(const Outcome& outcome, std::size_t job, std::uint32_t discard);

// Fetches for all jobs together in the steady part of the run, per epoch's worth of samples read:
// 0.8 means that a job costs 0.8 of the dataset per epoch. Without a steady part: of all epochs
// from `discard` on, unfinished ones with the samples read so far.
double fetches_per_job_epoch(const Outcome& outcome, std::uint32_t discard);

}  // namespace stoker::simulate
