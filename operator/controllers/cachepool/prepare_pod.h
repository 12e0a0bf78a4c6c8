#pragma once

#include <optional>
#include <string>

#include "operator/api/meta.h"
#include "operator/api/pod.h"
#include "operator/controllers/cachepool/node_pod.h"
#include "operator/core/plan_preparation.h"
#include "operator/kube/json.h"

// The pod that gives a pool's directory on one node to the sidecars' group; docs/adr/0002 says why
// it is what it is. Pure.
namespace stoker::control {

Json build_prepare_pod(
    const PreparationTarget& target,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner);

// The other way: what a pod of ours is there for. Texts are empty where its annotations are
// missing.
PreparationPod read_prepare_pod(const Pod& pod);

}  // namespace stoker::control
