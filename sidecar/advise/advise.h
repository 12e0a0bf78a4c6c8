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

// Predicts the worth of a cache to the program of a trace: replays its reads through the simulator,
// with several cache sizes. Pure; equal questions give equal answers.
namespace stoker::advise {

// The recommended size saves this part of what the whole dataset would save.
inline constexpr double kEnough = 0.95;

// Reasons of contracts, which `kubectl stoker advise` gives for a running job, too.
inline constexpr const char* kForSharedReads =
    "saves only if several jobs read the dataset at the same time";
inline constexpr const char* kForLowLosses =
    "if the training may read samples with a low loss less often";
inline constexpr const char* kForRepeatedDraws =
    "if the training may draw samples with replacement";

// The origin, as far as the user knows it. Without it the advice has no times.
struct Origin {
    Bytes bytes_per_second = mib(200);
    Duration latency = std::chrono::milliseconds{5};
    std::uint32_t requests_max = 64;  // of the sidecar, in flight
};

struct Question {
    std::optional<Bytes> cache;  // a size to look at besides the curve; over all nodes
    Bytes window = mib(256);     // of the sidecar, besides the cache
    std::optional<Origin> origin;
    // Samples per second that all ranks compute if data is never late. Without it the trace's rate
    // counts, which is a lower bound.
    std::optional<double> compute_rate;
    std::uint32_t batch = 64;
    std::uint32_t workers = 8;  // of each rank: requests in flight without a cache
};

// Totals of a replayed run.
struct Run {
    Bytes origin_bytes{};
    double hit_ratio = 0;      // of the reads
    double seconds = 0;        // predicted; of the whole run
    double epoch_seconds = 0;  // mean of the epochs after the first; 0: there is none
};

// Results for one size.
struct SizeResult {
    Bytes size{};
    double share = 0;  // of the dataset on the node
    Run keep;          // never-evict, what the sidecar does by default
    Run lru;
};

// A sampling contract, and what it would read with Advice::contracts_size.
struct ContractResult {
    std::string_view name;
    bool applies = false;
    std::string reason;                   // why it applies, or not
    std::optional<Bytes> origin_bytes{};  // of as many reads; none if it does not apply
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
    bool has_times = false;           // the question named an origin
    bool rate_is_bound = false;       // the compute rate is the trace's own
    double compute_rate = 0;          // samples per second, all ranks
    Run without;                      // without a cache
    std::vector<SizeResult> curve;    // ascending; 0 (a sidecar reads ahead) to 1 of the dataset
    std::optional<SizeResult> asked;  // of Question::cache
    Verdict verdict = Verdict::kWorthIt;
    std::string verdict_reason;
    SizeResult recommended;  // size 0 unless recommends_cache()
    std::string size_reason;
    std::string_view eviction;  // value of evictionPolicy to set: "Auto" or "LRU"
    std::string eviction_reason;
    std::string_view contract;  // recommended
    Bytes contracts_size{};     // of the cache: asked, else recommended
    std::vector<ContractResult> contracts;

    [[nodiscard]] bool recommends_cache() const {
        return verdict == Verdict::kWorthIt || verdict == Verdict::kTimeUnknown;
    }

    // Sizes are compared by time, not by traffic.
    [[nodiscard]] bool is_by_time() const { return has_times && !rate_is_bound; }
};

// kInvalidArgument: a number of the question is out of range.
Result<Advice> advise(const Trace& trace, const Question& question);

}  // namespace stoker::advise
