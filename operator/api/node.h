#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/meta.h"

namespace stoker::control {

// What the operator needs of a v1 Node.
struct Node {
    ObjectMeta meta;
    std::string boot_id;  // another one after each start of the machine
    bool ready = false;
    std::optional<WallTime>
        not_ready_since;  // while not ready, when the Ready condition last changed
    bool unschedulable = false;

    bool operator==(const Node&) const = default;
};

// kInvalidArgument: not JSON or a field of another type.
Result<Node> parse_node(std::string_view json);

}  // namespace stoker::control
