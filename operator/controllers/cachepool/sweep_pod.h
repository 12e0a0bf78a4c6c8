#pragma once

#include <optional>

#include "operator/api/meta.h"
#include "operator/api/pod.h"
#include "operator/controllers/cachepool/node_pod.h"
#include "operator/core/plan_sweeps.h"
#include "operator/kube/json.h"

// The pod that removes what no live dataset keeps in a pool's directory on one node; docs/adr/0004
// says why it is what it is. Pure.
namespace stoker::control {

// What it runs, as an argument list: removes every node directory below `root` that is neither kept
// nor younger than an hour nor in use, and fails if one could not be removed. What does not look
// like a node directory of ours is never touched.
std::vector<std::string> sweep_command(const NodeSweep& sweep, const std::string& root);

Json build_sweep_pod(
    const NodeSweep& sweep,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner);

// The other way: what a pod of ours is there for. Texts are empty where its annotations are
// missing.
SweepPod read_sweep_pod(const Pod& pod);

}  // namespace stoker::control
