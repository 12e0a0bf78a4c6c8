#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/api/node_report.h"

namespace stoker::control {

// The relevant changes in a report. Changed bytes alone are not reported.
struct NodeNews {
    bool verdicts = false;  // verdicts on the node's pools
    bool mounts = false;    // the set of mounted directories
    bool sweeps = false;    // a sweep has ended

    [[nodiscard]] bool any() const { return verdicts || mounts || sweeps; }
};

struct NodeCounts {
    std::uint64_t reports = 0;  // accepted
    std::uint64_t reports_refused =
        0;  // invalid, from an unauthorized sender, or about another node
};

// The last report of every node's program and the orders for it: the pools of the node and at most
// one sweep. Nothing survives a restart: node programs call again within seconds and repeat
// everything. A silent node keeps its last report until forget_silent(). A restarted program that
// does not mention a pool yet keeps its previous report on that pool. Thread-safe.
class NodeRegistry {
public:
    struct Options {
        std::size_t node_count_max = 20'000;
        Duration forget_after = std::chrono::hours{1};
    };

    // The pools of a node, from the cluster cache. Called without a lock.
    using PoolsOf = std::function<std::vector<PoolOrder>(const std::string& node)>;

    // Called on the thread of report()'s caller, without a lock.
    using OnNews = std::function<void(const NodeNews& news)>;

    NodeRegistry(Options options, PoolsOf pools_of, OnNews on_news);

    // Notes that node programs can call from now on. Only the first call counts.
    void listen(TimePoint now);
    // nullopt: node programs cannot call yet.
    [[nodiscard]] std::optional<TimePoint> listening_since();

    // Handles a report from a sender that may speak for the node; returns the response. The
    // caller has set received_at and received_wall. A sweep's result ends the order with the same id and
    // is confirmed; unexpected results are confirmed, too. kInvalidArgument:
    // validate_node_report(). kResourceExhausted: too many nodes.
    Result<NodeOrders> report(NodeReport report);

    // Counts a report that was refused before it reached the registry.
    void count_refused() { ++state_.lock()->counts.reports_refused; }

    // Orders a sweep from the node's program until it reports the result, or until
    // withdraw_sweep(). Replaces an earlier order. The order contains only the node's own pools.
    void order_sweep(const std::string& node, SweepOrder order);
    // Withdraws this order; does nothing if another one is in force.
    void withdraw_sweep(const std::string& node, const std::string& id);
    // Results of ordered sweeps since the last call, in order of arrival.
    std::vector<SweepResult> take_results();

    // The last reports of all nodes.
    [[nodiscard]] NodeReports all();

    // Call it when the node has left the cluster.
    void forget(const std::string& node);
    // Forgets nodes whose last report is older than forget_after.
    void forget_silent(TimePoint now);

    [[nodiscard]] NodeCounts counts() { return state_.lock()->counts; }

private:
    struct State {
        NodeReports reports;
        std::map<std::string, SweepOrder> orders;  // by node
        std::vector<SweepResult> results;
        std::optional<TimePoint> listening_since;
        NodeCounts counts;
    };

    // Stores the report as the node's last one; sets `news` to the changes.
    Result<std::shared_ptr<const NodeReport>> remember(
        State& state, NodeReport report, const std::vector<PoolOrder>& pools, NodeNews& news) const;
    // Takes the results; returns the ids to confirm, and whether one of them was expected.
    static std::pair<std::vector<std::string>, bool> take_sweeps(
        State& state, const NodeReport& report);

    Options options_;
    PoolsOf pools_of_;
    OnNews on_news_;
    Guarded<State> state_;
};

}  // namespace stoker::control
