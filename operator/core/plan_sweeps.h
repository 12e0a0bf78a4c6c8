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
#include "operator/api/meta.h"
#include "operator/api/pod.h"

// Which nodes need a sweep pod: the short-lived one that removes what no live dataset keeps there
// (docs/adr/0004). Mark and sweep: the operator says what stays, the pod removes the rest, so that
// nothing is left behind by a deletion that nobody saw. Pure.
namespace stoker::control {

// The directory of a pool on one node.
struct SweepPlace {
    std::string pool;
    std::string node;
    std::string node_uid;
    std::string host_path;

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

struct SweepPod {
    ObjectKey key;
    SweepPlace place;
    std::vector<std::string> expired;  // uids, as NodeSweep::expired
    PodPhase phase = PodPhase::kPending;
    bool deleting = false;
    WallTime created_at{};

    bool operator==(const SweepPod&) const = default;
};

// A dataset whose room a grant needs (AllocationPlan::sweeps).
struct SweepNeed {
    std::string pool;
    std::string node;
    std::string uid;

    auto operator<=>(const SweepNeed&) const = default;
};

// A directory that a pod reads which has not ended, or with an attached sidecar: never touched,
// whatever is known of its dataset.
struct SweepGuard {
    std::string node;
    std::string ns;
    std::string uid;

    auto operator<=>(const SweepGuard&) const = default;
};

// Of a pod's mount, "<namespace>/<uid>" below its pool's directory; none for any other text.
std::optional<SweepGuard> guard_of(const std::string& node, const std::string& node_directory);

struct SweepView {
    std::vector<SweepPlace> places;  // every ready node of every pool
    std::vector<SweepDataset> datasets;
    std::vector<SweepPod> pods;
    std::set<SweepNeed> needs;
    std::set<SweepGuard> guards;
    std::map<SweepPlace, WallTime> swept;  // when the last sweep that succeeded began
    std::map<SweepPlace, std::set<std::string>> deleted;  // uids of Datasets that had bytes there
    WallTime watching_since{};  // places that are not in `swept` count from here
};

struct SweepLimits {
    std::size_t pods_at_once = 4;
    std::size_t kept_max = 5000;  // more do not fit into a pod; then nothing is swept
    Duration every = std::chrono::hours{6};
    Duration patience = std::chrono::minutes{10};    // with a pod that neither succeeds nor fails
    Duration retry_after = std::chrono::minutes{5};  // a failed pod stays so long, to be read
};

struct NodeSweep {
    SweepPlace place;
    std::vector<std::string> kept;     // "<namespace>/<uid>", sorted: everything else goes
    std::vector<std::string> expired;  // uids whose bytes go however young: due, or deleted

    bool operator==(const NodeSweep&) const = default;
};

struct SweepPlan {
    std::vector<NodeSweep> create;  // sorted by place
    std::vector<ObjectKey> remove;  // pods, in their order
    std::vector<SweepPod> finished;
    std::vector<SweepPlace> failed;  // tried without success; tried again
    std::string refused;             // why nothing can be swept, or empty

    bool operator==(const SweepPlan&) const = default;
};

// A place is swept when a dataset there was deleted, when the bytes of one there are due
// (retention, or a grant needs their room), and from time to time. A dataset in use is never due,
// and of a deleted one a directory that pods read waits until they have ended.
// `now` is compared with stamps of the API server and of statuses, so it is good for seconds only.
SweepPlan plan_sweeps(const SweepView& view, WallTime now, const SweepLimits& limits);

// "stoker-sweep-0123456789abcdef": one for each place, so that two never run there together.
std::string sweep_pod_name(const SweepPlace& place);

}  // namespace stoker::control
