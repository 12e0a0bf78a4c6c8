#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "sidecar/advise/shape.h"
#include "sidecar/advise/trace.h"

// Predicts the worth of a cache to the program whose reads a trace has: replays them through the
// simulator, with several cache sizes. Pure; equal questions give equal answers.
namespace stoker::advise {

// The recommended size saves this part of what the whole dataset would save.
inline constexpr double kEnough = 0.95;

// Reasons for and against contracts; `kubectl stoker advise` also gives them for a running job.
inline constexpr const char* kForSharedReads =
    "saves only if several jobs read the dataset at the same time";
inline constexpr const char* kForLowLosses =
    "if the training may read samples with a low loss less often";
inline constexpr const char* kForRepeatedDraws =
    "if the training may draw samples with replacement";

// The origin's speed, as far as the user knows it. Without it the advice has no times.
struct Origin {
    Bytes bytes_per_second = mib(200);
    Duration latency = std::chrono::milliseconds{5};
    std::uint32_t requests_max = 64;  // requests that the sidecar has in flight
};

struct Question {
    std::optional<Bytes> cache;  // a size to examine in addition to the curve; over all nodes
    Bytes window = mib(256);     // the sidecar's window, besides the cache
    std::optional<Origin> origin;
    // Samples per second that all ranks together compute if data is never late. Without it, the
    // trace's own rate is used, which is a lower bound.
    std::optional<double> compute_rate;
    std::uint32_t batch = 64;
    std::uint32_t workers = 8;  // per rank: requests in flight without a cache
};

// Totals of a replayed run.
struct Run {
    Bytes origin_bytes{};
    double hit_ratio = 0;      // share of the reads
    double seconds = 0;        // predicted time of the whole run
    double epoch_seconds = 0;  // mean of the epochs after the first; 0: there is none
};

// Results for one cache size.
struct SizeResult {
    Bytes size{};
    double share = 0;  // share of the dataset that fits on the node
    Run keep;          // with policy never-evict, the sidecar's default
    Run lru;
};

// A sampling contract, and what it would read with a cache of Advice::contracts_size.
struct ContractResult {
    std::string_view name;
    bool applies = false;
    std::string reason;                   // why the contract applies, or not
    std::optional<Bytes> origin_bytes{};  // for as many reads; unset if it does not apply
};

enum class Verdict : std::uint8_t {
    kWorthIt,
    kOnePass,       // nothing is read twice
    kComputeBound,  // the origin alone is fast enough; a cache saves traffic only
    kLookAhead,     // a sidecar that reads ahead is fast enough; a cache saves traffic only
    kTimeUnknown,   // saves traffic; without a compute rate nobody knows whether it saves time
};

struct Advice {
    Shape shape;
    RefusedLines refused;
    std::uint64_t partial_reads = 0;
    bool is_access_log = false;
    bool has_times = false;           // the question states an origin
    bool rate_is_bound = false;       // the compute rate comes from the trace: a lower bound
    double compute_rate = 0;          // samples per second, all ranks
    Run without;                      // the run without a cache
    std::vector<SizeResult> curve;    // ascending: 0 (only reads ahead) to the whole dataset
    std::optional<SizeResult> asked;  // result for Question::cache
    Verdict verdict = Verdict::kWorthIt;
    std::string verdict_reason;
    SizeResult recommended;  // size 0 unless recommends_cache()
    std::string size_reason;
    std::string_view eviction;  // recommended evictionPolicy: "Auto" or "LRU"
    std::string eviction_reason;
    std::string_view contract;  // recommended contract
    Bytes contracts_size{};     // cache size for `contracts`: the asked one, else the recommended
    std::vector<ContractResult> contracts;

    [[nodiscard]] bool recommends_cache() const {
        return verdict == Verdict::kWorthIt || verdict == Verdict::kTimeUnknown;
    }

    // Whether sizes are compared by time; otherwise by traffic.
    [[nodiscard]] bool is_by_time() const { return has_times && !rate_is_bound; }
};

// kInvalidArgument: a number of the question is out of range.
Result<Advice> advise(const Trace& trace, const Question& question);

}  // namespace stoker::advise
