#pragma once

#include <optional>
#include <string>

#include "operator/api/meta.h"
#include "operator/api/pod.h"
#include "operator/core/plan_preparation.h"
#include "operator/kube/json.h"

// The pod that gives a pool's directory on one node to the sidecars' group; docs/adr/0002 says why
// it is what it is. Pure.
namespace stoker::control {

struct PrepareSettings {
    std::string ns;       // the operator's own
    std::string own_pod;  // the operator's own pod, which owns them, so that none outlives an
                          // uninstall; may be missing
    std::string
        image;  // any with find, chgrp and chmod: the sidecar's, which is on the nodes anyway
    std::string image_pull_policy;
};

Json build_prepare_pod(
    const PreparationTarget& target,
    const PrepareSettings& settings,
    const std::optional<OwnerReference>& owner);

// The other way: what a pod of ours is there for. Texts are empty where its annotations are
// missing.
PreparationPod read_prepare_pod(const Pod& pod);

}  // namespace stoker::control
