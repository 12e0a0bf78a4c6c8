#pragma once

#include <functional>
#include <string>

#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/node_rules.h"

namespace stoker::control {

// Authentication of node programs and the registry of their reports. The registry must outlive
// every user of this.
struct NodePrograms {
    NodeRegistry& registry;
    NodeProgramAccount account;
    // The node of a pod in the operator's own namespace from the cluster cache, or "". Thread-safe.
    // Needed because API servers before 1.30 do not report it with the token.
    std::function<std::string(const std::string& pod)> node_of_pod;
};

}  // namespace stoker::control
