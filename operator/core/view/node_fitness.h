#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/cache_pool.h"
#include "operator/api/node.h"
#include "operator/api/node_report.h"

// Which nodes of a pool can hold cache bytes, as their node programs say. Pure.
namespace stoker::control {

// Later is worse.
enum class NodeFitness : std::uint8_t {
    kReady,
    kNodeNotReady,    // in Kubernetes
    kWaiting,         // for the first report about the pool
    kProgramMissing,  // silent for longer than kNodeSilenceMax
    kFailing,
    kPathRefused,
    kOtherPool,
    kNotEmpty,
};

// As the reason of a condition: "Ready", "NodeProgramMissing", ...
std::string_view to_string(NodeFitness fitness);

// What is known of all node programs.
struct NodeProgramView {
    NodeReports reports;
    std::set<std::string> nodes_with_pod;      // a pod of the DaemonSet is on them
    std::optional<TimePoint> listening_since;  // node programs can call since then; none: not yet
};

struct NodeVerdict {
    std::string node;
    NodeFitness fitness = NodeFitness::kWaiting;
    std::string message;  // the node program's words

    bool operator==(const NodeVerdict&) const = default;
};

// The last word of the node's program about the pool's present directory, or nullptr. Valid as long
// as `reports`.
const PoolState* find_state(
    const NodeReports& reports, const std::string& node, const CachePool& pool);

// One for each node that the pool's selector matches, in the order of `nodes`.
std::vector<NodeVerdict> judge_nodes(
    const CachePool& pool,
    const std::vector<Node>& nodes,
    const NodeProgramView& programs,
    TimePoint now);

}  // namespace stoker::control
