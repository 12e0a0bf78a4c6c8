#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"

// Measured data rates of a running job and of its origin, and the value of cache bytes to the job.
// Measuring does not disturb it. Pure, thread-safe. Rates are bytes per second of the whole job,
// over all ranks; never NaN, never negative.
//
// Sources: the ingest rate f* and the origin's rate as in SiloD (EuroSys 2023), times with and
// without cache as in Quiver (FAST 2020) and iCACHE (HPCA 2023).
namespace stoker::control {

enum class ProfileVerdict : std::uint8_t {
    kUnknown,       // not enough windows yet
    kComputeBound,  // even the whole dataset cached hardly speeds it up
    kDataBound,     // waits for its data without a cache
};

std::string_view to_string(ProfileVerdict verdict);

enum class ProfileMethod : std::uint8_t {
    kNone,       // nothing is known
    kPredicted,  // from waits and rates, without a probe
    kMeasured,   // from windows without and with the cache (profiling.mode Measured)
};

std::string_view to_string(ProfileMethod method);

struct JobProfile {
    ProfileVerdict verdict = ProfileVerdict::kUnknown;
    ProfileMethod method = ProfileMethod::kNone;
    double ingest_rate = 0;             // f*: rate if it never waited for data; 0: unknown
    double read_rate = 0;               // present rate
    double wait_share = 0;              // share of the trainers' time spent waiting for data, 0..1
    double origin_rate = 0;             // rate from the origin while the job waits; 0: unknown
    bool origin_rate_is_bound = false;  // true: a lower bound; the job never waited
    double origin_latency = 0;          // seconds a request takes, mean; 0: unknown
    double miss_share = 0;              // share of recently read bytes that missed, 0..1
    double sample_bytes = 0;            // mean
    double measured_benefit = 0;        // with kMeasured: time without / time with the cache
    std::uint32_t window_count = 0;     // number of windows since the last grant that it uses
    double confidence = 0;              // 0 (a guess) .. 1 (many windows that agree)

    bool operator==(const JobProfile&) const = default;
};

// Value of the cache to a job, now and with more bytes.
struct JobValue {
    double epoch_seconds_without = 0;           // predicted; 0: unknown
    double epoch_seconds_with = 0;              // with the bytes cached now
    double epoch_seconds_best = 0;              // if it never waited for data
    double benefit = 1;                         // ..._without / ..._with; 1: unknown
    double gpu_seconds_saved_per_gib_hour = 0;  // with the bytes cached now; 0 with nothing cached
    double seconds_saved_per_epoch = 0;
    double seconds_per_gib = 0;           // saved in an epoch per GiB cached now, mean
    double marginal_seconds_per_gib = 0;  // saved in an epoch by the next GiB

    bool operator==(const JobValue&) const = default;
};

struct ValueInput {
    const JobProfile& profile;
    Bytes epoch_bytes{};          // read by all ranks together per epoch; 0: unknown
    Bytes everything{};           // cacheable bytes: the datasets, on each of its nodes
    Bytes cached{};               // resident now, over all nodes
    std::uint32_t gpu_count = 1;  // of the job; 1 for a job without GPUs
};

// t(c) = bytes · max(1/f*, m(c)/origin rate), m(c) = 1 - c/everything: exact sampling, bytes cached
// evenly. A measured benefit replaces the predicted one.
JobValue value_of(const ValueInput& input);

// A potential below this makes a job compute-bound.
inline constexpr double kComputeBoundBelow = 1.05;
// A compute-bound job becomes data-bound only above this: noise must not flip the verdict.
inline constexpr double kDataBoundAbove = 1.10;

}  // namespace stoker::control
