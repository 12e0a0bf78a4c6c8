#include "operator/core/view/node_fitness.h"

#include <algorithm>

#include "operator/core/view/cluster_view.h"

namespace stoker::control {

namespace {

NodeFitness fitness_of(PoolVerdict verdict) {
    switch (verdict) {
        case PoolVerdict::kReady:
            return NodeFitness::kReady;
        case PoolVerdict::kNotEmpty:
            return NodeFitness::kNotEmpty;
        case PoolVerdict::kOtherPool:
            return NodeFitness::kOtherPool;
        case PoolVerdict::kRefused:
            return NodeFitness::kPathRefused;
        case PoolVerdict::kFailed:
            return NodeFitness::kFailing;
        case PoolVerdict::kUnknown:
            break;
    }
    return NodeFitness::kWaiting;
}

NodeVerdict judge(
    const CachePool& pool, const Node& node, const NodeProgramView& programs, TimePoint now) {
    const std::string& name = node.meta.name;
    if (!node.ready) {
        return {name, NodeFitness::kNodeNotReady, ""};
    }
    const auto report = programs.reports.find(name);
    const std::optional<TimePoint> heard = report == programs.reports.end()
                                               ? programs.listening_since
                                               : std::optional(report->second->received_at);
    if (heard && now - *heard > kNodeSilenceMax) {
        return {name, NodeFitness::kProgramMissing, ""};
    }
    const PoolState* state = find_state(programs.reports, name, pool);
    return state == nullptr ? NodeVerdict{name, NodeFitness::kWaiting, ""}
                            : NodeVerdict{name, fitness_of(state->verdict), state->message};
}

}  // namespace

std::string_view to_string(NodeFitness fitness) {
    switch (fitness) {
        case NodeFitness::kReady:
            return "Ready";
        case NodeFitness::kNodeNotReady:
            return "NodeNotReady";
        case NodeFitness::kWaiting:
            return "NodesNotHeard";
        case NodeFitness::kProgramMissing:
            return "NodeProgramMissing";
        case NodeFitness::kFailing:
            return "NodeFailing";
        case NodeFitness::kPathRefused:
            return "PathRefused";
        case NodeFitness::kOtherPool:
            return "OtherPool";
        case NodeFitness::kNotEmpty:
            break;
    }
    return "NotEmpty";
}

const PoolState* find_state(
    const NodeReports& reports, const std::string& node, const CachePool& pool) {
    const auto report = reports.find(node);
    if (report == reports.end()) {
        return nullptr;
    }
    const auto found = std::ranges::find_if(report->second->pools, [&](const PoolState& state) {
        return state.pool == pool.meta.name && state.path == pool.spec.host_path;
    });
    return found == report->second->pools.end() ? nullptr : &*found;
}

std::vector<NodeVerdict> judge_nodes(
    const CachePool& pool,
    const std::vector<Node>& nodes,
    const NodeProgramView& programs,
    TimePoint now) {
    std::vector<NodeVerdict> result;
    for (const Node& node : nodes) {
        if (matches(pool.spec.node_selector, node.meta.labels)) {
            result.push_back(judge(pool, node, programs, now));
        }
    }
    return result;
}

}  // namespace stoker::control
