#pragma once

#include <memory>
#include <string>

#include "operator/api/node_report.h"

// Reports of node programs about a pool "nvme" at one path. Each test changes the fields it needs.
namespace stoker::control {

inline PoolState make_pool_state(
    const std::string& path, PoolVerdict verdict = PoolVerdict::kReady, std::string message = "") {
    PoolState state;
    state.pool = "nvme";
    state.path = path;
    state.verdict = verdict;
    state.message = std::move(message);
    return state;
}

inline NodeReport make_node_report(const std::string& node, PoolState state) {
    NodeReport report;
    report.node = node;
    report.boot_id = "boot-1";
    report.version = "test";
    report.pools = {std::move(state)};
    return report;
}

inline NodeReports::value_type make_known(NodeReport report) {
    std::string node = report.node;
    return {std::move(node), std::make_shared<const NodeReport>(std::move(report))};
}

}  // namespace stoker::control
