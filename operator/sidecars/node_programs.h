#pragma once

#include <functional>
#include <string>

#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/node_rules.h"

namespace stoker::control {

// How the node programs are known and where their words go. The registry must outlive whoever is
// given this.
struct NodePrograms {
    NodeRegistry& registry;
    NodeProgramAccount account;
    // The node of a pod in the operator's own namespace as the cluster cache knows it, or "".
    // Thread-safe. API servers before 1.30 do not say it with the token.
    std::function<std::string(const std::string& pod)> node_of_pod;
};

}  // namespace stoker::control
