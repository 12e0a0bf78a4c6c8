#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/meta.h"
#include "operator/api/pod.h"

// Which nodes need a prepare pod: the short-lived one that gives a pool's directory to the
// sidecars' group (docs/adr/0002). Pure.
namespace stoker::control {

// One directory on one node, as long as node and disk are the same: another boot or another node of
// that name is another target.
struct PreparationTarget {
    std::string node;
    std::string node_uid;
    std::string boot_id;
    std::string host_path;

    auto operator<=>(const PreparationTarget&) const = default;
};

struct PreparationPod {
    ObjectKey key;
    PreparationTarget target;
    PodPhase phase = PodPhase::kPending;
    bool deleting = false;
    WallTime created_at{};

    bool operator==(const PreparationPod&) const = default;
};

struct PreparationView {
    std::set<PreparationTarget> wanted;  // every ready node of every pool
    std::set<PreparationTarget> done;    // prepared since this operator looks
    std::vector<PreparationPod> pods;
};

struct PreparationLimits {
    std::size_t pods_at_once = 10;
    Duration patience = std::chrono::minutes{5};  // with a pod that neither succeeds nor fails
    Duration retry_after =
        std::chrono::minutes{1};  // a failed pod stays so long, for people to read its log
};

struct PreparationPlan {
    std::vector<PreparationTarget> create;    // sorted
    std::vector<ObjectKey> remove;            // in the order of the pods
    std::vector<PreparationTarget> finished;  // to be added to `done`
    std::vector<PreparationTarget> failed;    // tried without success; tried again

    bool operator==(const PreparationPlan&) const = default;
};

// One pod for each target that is wanted and not done, some at a time; pods that have done their
// work or are no longer wanted go. `now` is compared with the API server's time stamps, so it is
// only good for minutes.
PreparationPlan plan_preparation(
    const PreparationView& view, WallTime now, const PreparationLimits& limits);

// "stoker-prepare-0123456789abcdef": the same for the same target, so that a second try makes no
// second pod.
std::string preparation_pod_name(const PreparationTarget& target);

}  // namespace stoker::control
