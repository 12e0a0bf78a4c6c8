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

// Which nodes are to be swept: their node program removes what no live dataset keeps there
// (docs/adr/0004). Mark and sweep: the operator says what stays, the node program removes the rest,
// so that nothing is left behind by a deletion that nobody saw. Pure.
namespace stoker::control {

// The directory of a pool on one node.
struct SweepPlace {
    std::string pool;
    std::string node;
    std::string path;

    auto operator<=>(const SweepPlace&) const = default;
};

// Bytes of a dataset, as its status knows them.
struct SweepHolding {
    std::string pool;
    std::string node;
    Bytes bytes{};

    bool operator==(const SweepHolding&) const = default;
};

// A dataset that exists: a Dataset, or one that a TrainingJob names inline.
struct SweepDataset {
    std::string ns;
    std::string uid;
    bool in_use = false;  // a job that has not ended names it
    WallTime last_use{};
    std::optional<std::int64_t> retention_seconds;  // none: for ever, until a grant needs the room
    std::vector<SweepHolding> holdings;

    bool operator==(const SweepDataset&) const = default;
};

enum class SweepPhase : std::uint8_t { kRunning, kSucceeded, kFailed };

// A sweep that was ordered from a node's program.
struct SweepRun {
    SweepPlace place;
    std::string id;
    std::vector<std::string> expired;  // uids, as NodeSweep::expired
    SweepPhase phase = SweepPhase::kRunning;
    WallTime began_at{};

    bool operator==(const SweepRun&) const = default;
};

// A dataset whose room a grant needs (AllocationPlan::sweeps).
struct SweepNeed {
    std::string pool;
    std::string node;
    std::string uid;

    auto operator<=>(const SweepNeed&) const = default;
};

// A directory that a pod reads which has not ended, that is mounted, or that has an attached
// sidecar: never touched, whatever is known of its dataset.
struct SweepGuard {
    std::string node;
    std::string ns;
    std::string uid;

    auto operator<=>(const SweepGuard&) const = default;
};

// Parses "<namespace>/<uid>"; none for a text that cannot be the path of a node directory: anybody
// may have written it.
std::optional<SweepGuard> guard_of(const std::string& node, const std::string& node_directory);

struct SweepView {
    std::vector<SweepPlace> places;  // every node of every pool whose program calls it ready
    std::vector<SweepDataset> datasets;
    std::vector<SweepRun> runs;
    std::set<SweepNeed> needs;
    std::set<SweepGuard> guards;
    std::map<SweepPlace, WallTime> swept;  // when the last sweep that succeeded began
    std::map<SweepPlace, std::set<std::string>> deleted;  // uids of Datasets that had bytes there
    WallTime watching_since{};  // places that are not in `swept` count from here
};

struct SweepLimits {
    std::size_t runs_at_once = 32;
    std::size_t kept_max = 100'000;  // more do not fit into 16 MiB; then the place is not swept
    Duration every = std::chrono::hours{6};
    Duration patience = std::chrono::minutes{10};    // with a run that neither succeeds nor fails
    Duration retry_after = std::chrono::minutes{5};  // since the beginning of a run that failed
};

struct NodeSweep {
    SweepPlace place;
    std::vector<std::string> kept;     // "<namespace>/<uid>", sorted: everything else goes
    std::vector<std::string> expired;  // uids whose bytes go however young: due, or deleted

    bool operator==(const NodeSweep&) const = default;
};

struct SweepPlan {
    std::vector<NodeSweep> start;     // sorted by place; never two on one node
    std::vector<SweepRun> finished;   // succeeded; to be forgotten
    std::vector<SweepRun> given_up;   // their node says nothing; to be withdrawn, and tried again
    std::vector<SweepRun> forgotten;  // failed a while ago; to be tried again
    std::string refused;              // why places are not swept, or empty

    bool operator==(const SweepPlan&) const = default;
};

// A place is swept when a dataset there was deleted, when the bytes of one there are due
// (retention, or a grant needs their room), and from time to time. A dataset in use is never due,
// and of a deleted one a directory that pods read waits until they have ended.
// `now` is compared with stamps of statuses, so it is good for seconds only.
SweepPlan plan_sweeps(const SweepView& view, WallTime now, const SweepLimits& limits);

}  // namespace stoker::control
