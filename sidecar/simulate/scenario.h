#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"

// What `stoker simulate` is asked: one dataset on one node, the jobs that read it, and an origin.
// Plain values; check_scenario() says what is wrong with one.
namespace stoker::simulate {

// Payload bytes of every sample.
struct DatasetSpec {
    std::uint64_t samples = 20'000;
    Bytes mean_bytes = kib(110);
    double sigma = 0;                  // of the logarithm of the sizes; 0: all alike
    std::vector<std::uint64_t> sizes;  // of a manifest; when not empty, replaces the three above
};

// Record bytes that the node may keep. `window_share` of them passes through, the rest is resident.
struct CacheSpec {
    double share = 0.2;  // of the dataset's record bytes
    Bytes bytes{};       // when not zero, replaces `share`
    double window_share = 0;
    std::string policy;  // of policies(); empty: as the sidecar does for the jobs' contracts
    std::map<std::string, double> parameters;  // of the policy; others have defaults
};

struct OriginSpec {
    Duration latency = std::chrono::milliseconds{5};
    Bytes bytes_per_second = mib(200);
    std::uint32_t requests_max = 32;  // in flight
};

// One job: one rank that computes at `speed` times the scenario's rate.
struct JobSpec {
    std::string contract = "exact";
    double speed = 1;
    Duration start{};                          // after the simulation's begin
    std::map<std::string, double> parameters;  // of the contract, by name; others have defaults
};

struct Scenario {
    DatasetSpec dataset;
    CacheSpec cache;
    OriginSpec origin;
    std::vector<JobSpec> jobs = {JobSpec{}};
    std::uint32_t epochs = 3;
    std::uint32_t discard = 1;  // first epochs that the means leave out
    std::uint32_t batch = 64;
    std::uint32_t ahead = 2;           // batches that a loader asks for before they are needed
    double samples_per_second = 2000;  // that a job of speed 1 computes
    double loss_correlation = 0;       // of importance between jobs, 0..1
    bool until_first_ends = false;     // the fastest job's last epoch ends the simulation
    std::uint64_t seed = 1;
};

// What one job got in one epoch.
struct EpochFigures {
    std::uint64_t epoch = 0;
    bool complete = false;  // false: the simulation ended first
    std::uint64_t requested = 0;
    std::uint64_t hits = 0;      // of these: fetched for an earlier read, of this job or another
    std::uint64_t distinct = 0;  // different samples served; counted here, not by the sampler
    std::uint64_t repeated = 0;  // the rest
    std::uint64_t substituted = 0;
    std::uint64_t origin_requests = 0;
    std::uint64_t origin_samples = 0;    // fetched by them: more where one brings a package
    std::uint64_t refill_samples = 0;    // of these: in the background, for nobody in particular
    std::uint64_t packaged_samples = 0;  // of these: neighbours of others, for whoever reads them
    Bytes origin_bytes{};                // of all
    Duration time{};                     // from the first request to the end of the last batch
    Duration waited{};                   // of this: for data
};

struct JobFigures {
    std::string contract;
    std::vector<EpochFigures> epochs;
};

struct Outcome {
    std::uint64_t samples = 0;
    Bytes dataset_bytes{};
    Bytes resident_bytes{};  // what the cache could keep
    Bytes window_bytes{};
    std::vector<JobFigures> jobs;
};

// Means over a job's complete epochs from `discard` on.
struct JobMeans {
    std::uint32_t epochs = 0;  // that count
    double requested = 0;      // of the dataset's samples
    double hit_ratio = 0;      // hits of requested
    double coverage = 0;       // distinct of the dataset's samples
    double substituted = 0;    // of requested
    double origin_requests = 0;
    double origin_samples = 0;  // of the dataset's samples
    double packaged = 0;        // of the dataset's samples
    double origin_bytes = 0;    // of the dataset's bytes
    double seconds = 0;
    double waited_seconds = 0;
};

JobMeans means_of(const Outcome& outcome, std::size_t job, std::uint32_t discard);

// Samples fetched for all jobs together, from their epoch `discard` on, for every epoch's worth of
// samples that they read: 0.8 says that a job costs 0.8 of the dataset an epoch. Unfinished epochs
// count with what they read.
double fetches_per_job_epoch(const Outcome& outcome, std::uint32_t discard);

}  // namespace stoker::simulate
