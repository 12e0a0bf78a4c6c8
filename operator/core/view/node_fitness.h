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

// Judges which nodes of a pool can hold cache bytes, from reports of their node programs. Pure.
namespace stoker::control {

// In order of severity; the last is the worst.
enum class NodeFitness : std::uint8_t {
    kReady,
    kNodeNotReady,    // the Node object is not Ready
    kWaiting,         // the node program has not reported about the pool yet
    kProgramMissing,  // no report for longer than kNodeSilenceMax
    kFailing,
    kPathRefused,
    kOtherPool,
    kNotEmpty,
};

// Text for a condition's reason: "Ready", "NodeProgramMissing", ...
std::string_view to_string(NodeFitness fitness);

// Input about all node programs.
struct NodeProgramView {
    NodeReports reports;
    std::set<std::string> nodes_with_pod;      // with a pod of the DaemonSet
    std::optional<TimePoint> listening_since;  // when node programs became able to connect
};

struct NodeVerdict {
    std::string node;
    NodeFitness fitness = NodeFitness::kWaiting;
    std::string message;  // from the node program

    bool operator==(const NodeVerdict&) const = default;
};

// The node program's last report about the pool's present directory, or nullptr. Valid as long as
// `reports`.
const PoolState* find_state(
    const NodeReports& reports, const std::string& node, const CachePool& pool);

// One verdict for each node that the pool's selector matches, in the order of `nodes`.
std::vector<NodeVerdict> judge_nodes(
    const CachePool& pool,
    const std::vector<Node>& nodes,
    const NodeProgramView& programs,
    TimePoint now);

}  // namespace stoker::control
