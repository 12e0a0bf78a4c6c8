#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/meta.h"
#include "operator/kube/json.h"

// The frame of the short-lived pods that work on a pool's directory on one node. Pure.
namespace stoker::control {

// The same for all of them.
struct NodePodSettings {
    std::string ns;       // the operator's own
    std::string own_pod;  // the operator's own pod, which owns them, so that none outlives an
                          // uninstall; may be missing
    std::string image;    // any with sh, find, flock, chgrp, chmod and rm: the sidecar's, which is
                          // on the nodes anyway
    std::string image_pull_policy;
};

// The pool's directory is at /pool, writable, and nothing else is: no capability, no token, no
// network of its own choice, a read-only root.
struct NodePod {
    std::string name;
    std::string component;  // value of kComponentLabel
    std::string node;
    std::string host_path;
    bool make_directory = false;
    TextMap annotations;
    std::vector<std::string> command;
    std::int64_t user = 0;
    std::int64_t group = 0;
    std::int64_t deadline_seconds = 0;
};

Json build_node_pod(
    const NodePod& pod,
    const NodePodSettings& settings,
    const std::optional<OwnerReference>& owner);

}  // namespace stoker::control
