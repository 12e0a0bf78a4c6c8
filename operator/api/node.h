#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "operator/api/document.h"
#include "operator/api/meta.h"

namespace stoker::control {

// The fields of a v1 Node that the operator uses.
struct Node {
    ObjectMeta meta;
    std::string boot_id;  // changes at each boot of the machine
    bool ready = false;
    std::optional<WallTime>
        not_ready_since;  // while not ready, when the Ready condition last changed

    bool operator==(const Node&) const = default;
};

}  // namespace stoker::control
