#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/label_selector.h"
#include "operator/api/meta.h"

// DatasetWarmup of stoker.dev/v1alpha1 as values; crds/stoker.dev_datasetwarmups.yaml describes every
// field.
namespace stoker::control {

// Nodes of the pool: those of `names`, or `count` of those that `selector` selects. Nothing set: all.
struct WarmupNodes {
    std::vector<std::string> names;
    std::optional<LabelSelector> selector;
    std::optional<std::int64_t> count;

    bool operator==(const WarmupNodes&) const = default;
};

struct DatasetWarmupSpec {
    std::string dataset_ref;  // in the same namespace
    std::optional<std::string> pool_ref;
    WarmupNodes nodes;
    std::optional<Bytes> rate_limit;  // per second, of all nodes together; none: no limit
    std::string schedule;  // cron, UTC (operator/core/spec/cron.h); empty: runs once, at once
    bool suspend = false;
    std::optional<std::int64_t> ttl_seconds_after_finished;

    bool operator==(const DatasetWarmupSpec&) const = default;
};

struct DatasetWarmupColumns {
    std::string state;
    std::string warmed;
    std::string percentage;
    std::string nodes;

    bool operator==(const DatasetWarmupColumns&) const = default;
};

// States of a node.
inline constexpr std::string_view kWarmupNodeWaiting = "Waiting";  // for its filler, or the grant
inline constexpr std::string_view kWarmupNodeFilling = "Filling";
inline constexpr std::string_view kWarmupNodeFull = "Full";  // the rest has no room, or is refused
inline constexpr std::string_view kWarmupNodeDone = "Done";
inline constexpr std::string_view kWarmupNodeSilent = "Unknown";  // no report for kReportAgeMax
// Deleted, not ready for long, or not in the pool any more. Ends when the node is back.
inline constexpr std::string_view kWarmupNodeGone = "Gone";
// No report for kWarmupNodeLostAfter. Ends with a report.
inline constexpr std::string_view kWarmupNodeLost = "Lost";

// The bytes and samples that one node has to warm, and has warmed. Bytes are payload, as in the Dataset's totalBytes.
struct WarmupNodeStatus {
    std::string node;
    std::string state;  // kWarmupNodeWaiting, ...
    std::int64_t total_bytes = 0;
    std::int64_t total_samples = 0;
    std::int64_t bytes_warmed = 0;
    std::int64_t samples_warmed = 0;
    std::int64_t samples_refused = 0;
    std::string message;                   // why it waits; empty: it does not
    std::optional<WallTime> silent_since;  // of the node's leader; none: it reports

    bool operator==(const WarmupNodeStatus&) const = default;
};

inline constexpr std::size_t kWarmupNodeCountMax = 256;

struct DatasetWarmupStatus {
    std::int64_t observed_generation = 0;
    std::vector<Condition> conditions;  // sorted by type
    DatasetWarmupColumns columns;
    std::string pool;
    std::int64_t total_bytes = 0;  // of all nodes
    std::int64_t total_samples = 0;
    std::int64_t bytes_warmed = 0;
    std::int64_t samples_warmed = 0;
    std::optional<WallTime> start_time;
    std::optional<WallTime> completion_time;
    std::optional<WallTime> last_schedule_time{};  // when the schedule began the last run
    std::optional<WallTime> next_schedule_time{};
    std::optional<WallTime> sampled_at;
    std::vector<WarmupNodeStatus> nodes;  // the chosen ones, sorted by name

    bool operator==(const DatasetWarmupStatus&) const = default;
};

struct DatasetWarmup {
    ObjectMeta meta;
    DatasetWarmupSpec spec;
    DatasetWarmupStatus status;

    bool operator==(const DatasetWarmup&) const = default;
};

// Like status_patch() of a TrainingJob.
Json status_patch(const DatasetWarmup& warmup);

}  // namespace stoker::control
