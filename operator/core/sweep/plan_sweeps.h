#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"

// Plans which nodes to sweep: their node program removes bytes that no live dataset keeps there
// (docs/adr/0004). Mark and sweep: the operator lists datasets to keep, the node program removes
// the rest, so bytes of unobserved deletions are removed too. Pure.
namespace stoker::control {

// The directory of a pool on one node.
struct SweepPlace {
    std::string pool;
    std::string node;
    std::string path;

    auto operator<=>(const SweepPlace&) const = default;
};

// Bytes of a dataset, according to its status.
struct SweepHolding {
    std::string pool;
    std::string node;
    Bytes bytes{};

    bool operator==(const SweepHolding&) const = default;
};

// An existing dataset: a Dataset, or an inline dataset of a TrainingJob.
struct SweepDataset {
    std::string ns;
    std::string uid;
    bool in_use = false;  // a job that has not ended names it
    WallTime last_use{};
    std::optional<std::int64_t> retention_seconds;  // none: kept until a grant needs the space
    std::vector<SweepHolding> holdings;

    bool operator==(const SweepDataset&) const = default;
};

enum class SweepPhase : std::uint8_t { kRunning, kSucceeded, kFailed };

// A sweep that was ordered from a node program.
struct SweepRun {
    SweepPlace place;
    std::string id;
    std::vector<std::string> expired;  // uids, as NodeSweep::expired
    SweepPhase phase = SweepPhase::kRunning;
    WallTime began_at{};

    bool operator==(const SweepRun&) const = default;
};

// A dataset whose space a grant needs (AllocationPlan::sweeps).
struct SweepNeed {
    std::string pool;
    std::string node;
    std::string uid;

    auto operator<=>(const SweepNeed&) const = default;
};

// A directory that is mounted, that a running pod reads, or that has an attached sidecar: never
// swept, whatever the state of its dataset.
struct SweepGuard {
    std::string node;
    std::string ns;
    std::string uid;

    auto operator<=>(const SweepGuard&) const = default;
};

// Parses "<namespace>/<uid>"; nullopt for a text that is not a node directory's path: the text is
// untrusted.
std::optional<SweepGuard> guard_of(const std::string& node, const std::string& node_directory);

struct SweepView {
    std::vector<SweepPlace> places;  // every node of every pool whose program reports it ready
    std::vector<SweepDataset> datasets;
    std::vector<SweepRun> runs;
    std::set<SweepNeed> needs;
    std::set<SweepGuard> guards;
    std::map<SweepPlace, WallTime> swept;                 // start of the last successful sweep
    std::map<SweepPlace, std::set<std::string>> deleted;  // uids of Datasets that had bytes there
    WallTime watching_since{};  // places without an entry in `swept` count from here
};

struct SweepLimits {
    std::size_t runs_at_once = 32;
    std::size_t kept_max = 100'000;  // more do not fit into 16 MiB: the place is not swept
    Duration every = std::chrono::hours{6};
    Duration patience = std::chrono::minutes{10};    // before a run without a result is given up
    Duration retry_after = std::chrono::minutes{5};  // counted from the failed run's start
};

struct NodeSweep {
    SweepPlace place;
    std::vector<std::string> kept;     // "<namespace>/<uid>", sorted: all others are removed
    std::vector<std::string> expired;  // uids to remove at any age: due or deleted datasets

    bool operator==(const NodeSweep&) const = default;
};

struct SweepPlan {
    std::vector<NodeSweep> start;     // sorted by place; at most one per node
    std::vector<SweepRun> finished;   // succeeded; delete these runs
    std::vector<SweepRun> given_up;   // no answer from the node; withdraw and try again
    std::vector<SweepRun> forgotten;  // failed some time ago; try again
    std::string refused;              // why no place is swept; empty: nothing prevents it

    bool operator==(const SweepPlan&) const = default;
};

// A place is swept when one of its datasets was deleted or is due (retention, or a grant needs its
// space), and at regular intervals. A dataset in use is never due. A deleted dataset's directory
// waits until the pods that read it have ended.
// `now` is compared with timestamps in statuses, so it is exact to seconds only.
SweepPlan plan_sweeps(const SweepView& view, WallTime now, const SweepLimits& limits);

}  // namespace stoker::control
