#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"

// What a running job needs from its data and what the origin gives it, measured without disturbing
// it, and what cache bytes are worth to it. Pure, thread-safe. Rates are bytes per second of the
// whole job, over all ranks; never NaN, never negative.
//
// Sources: f* and the remote rate as in SiloD (EuroSys 2023), the ratio of times as in Quiver (FAST
// 2020) and iCACHE (HPCA 2023).
namespace stoker::control {

enum class ProfileVerdict : std::uint8_t {
    kUnknown,       // not enough seen yet
    kComputeBound,  // hardly faster with every byte cached
    kDataBound,     // waits for its data without a cache
};

std::string_view to_string(ProfileVerdict verdict);

enum class ProfileMethod : std::uint8_t {
    kNone,       // nothing is known
    kPredicted,  // from waits and rates, undisturbed
    kMeasured,   // from a window past the cache beside one through it (profiling.mode Measured)
};

std::string_view to_string(ProfileMethod method);

struct JobProfile {
    ProfileVerdict verdict = ProfileVerdict::kUnknown;
    ProfileMethod method = ProfileMethod::kNone;
    double ingest_rate = 0;  // f*: what the job would read if its data were never late; 0: unknown
    double read_rate = 0;    // what it reads now
    double wait_share = 0;   // of the trainers' time that waits for data, 0..1
    double origin_rate = 0;  // what the origin gives it when it has to wait for it; 0: unknown
    bool origin_rate_is_bound = false;  // true: the job never had to wait, the origin gives at
                                        // least this much
    double origin_latency = 0;          // seconds a request takes, mean; 0: unknown
    double miss_share = 0;              // of the bytes that were read lately, 0..1
    double sample_bytes = 0;            // mean
    double measured_benefit = 0;        // of kMeasured: time past the cache / time through it
    std::uint32_t window_count = 0;     // of this grant, that it is made of
    double confidence = 0;              // 0 (a guess) .. 1: many windows that agree

    bool operator==(const JobProfile&) const = default;
};

// What the cache is worth to a job now, and what more of it would be.
struct JobValue {
    double epoch_seconds_without = 0;           // predicted; 0: unknown
    double epoch_seconds_with = 0;              // with what is cached now
    double epoch_seconds_best = 0;              // if data were never late
    double benefit = 1;                         // without / with; 1 where it is unknown
    double potential = 1;                       // without / best: the benefit of caching everything
    double gpu_seconds_saved_per_gib_hour = 0;  // with what is cached now; 0 with nothing cached
    double seconds_saved_per_epoch = 0;
    double seconds_per_gib = 0;           // of an epoch, for a GiB that is cached now, mean
    double marginal_seconds_per_gib = 0;  // of an epoch, for the next GiB

    bool operator==(const JobValue&) const = default;
};

struct ValueInput {
    const JobProfile& profile;
    Bytes epoch_bytes{};  // that all ranks together read in an epoch; 0: unknown, nothing is valued
    Bytes everything{};   // that can be cached: the datasets, on each of its nodes
    Bytes cached{};       // resident now, over all nodes
    std::uint32_t gpu_count = 1;  // of the job; 1 for a job without
};

// t(c) = bytes · max(1/f*, m(c)/origin rate), m(c) = 1 - c/everything: the exact contract, cached
// evenly. A measured benefit replaces the predicted one.
JobValue value_of(const ValueInput& input);

// A potential under this makes a job compute-bound (DESIGN 4.3).
inline constexpr double kComputeBoundBelow = 1.05;
// It stays so until its potential is over this: noise must not flap.
inline constexpr double kDataBoundAbove = 1.10;

}  // namespace stoker::control
