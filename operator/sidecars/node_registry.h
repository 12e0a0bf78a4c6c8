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

// What a report changed that somebody acts upon. Bytes alone are no news.
struct NodeNews {
    bool verdicts = false;  // of its pools
    bool mounts = false;    // what is mounted into pods
    bool sweeps = false;    // one has ended

    [[nodiscard]] bool any() const { return verdicts || mounts || sweeps; }
};

struct NodeCounts {
    std::uint64_t reports = 0;          // accepted
    std::uint64_t reports_refused = 0;  // impossible, of a stranger or about another node
};

// The last report of every node's program and the orders for it: the pools that the node belongs to
// and at most one sweep. Nothing here is kept over a restart: node programs call again within
// seconds and repeat everything. A node whose program falls silent keeps its last report until
// forget_silent(), and a program that has just started, and says nothing of a pool yet, its last
// word about that. Thread-safe.
class NodeRegistry {
public:
    struct Options {
        std::size_t node_count_max = 20'000;
        Duration forget_after = std::chrono::hours{1};
    };

    // The pools that a node belongs to, as the cluster cache knows them. Called without a lock.
    using PoolsOf = std::function<std::vector<PoolOrder>(const std::string& node)>;

    // Called on the thread of report()'s caller, without a lock.
    using OnNews = std::function<void(const NodeNews& news)>;

    NodeRegistry(Options options, PoolsOf pools_of, OnNews on_news);

    // From now on node programs can call. The first time counts.
    void listen(TimePoint now);
    // None: they cannot yet.
    [[nodiscard]] std::optional<TimePoint> listening_since();

    // A report whose sender is known to speak for that node; the answer to it. Its received_at and
    // received_wall are set. A sweep's result ends the order of the same id and is confirmed; so is
    // a result that nobody waits for. kInvalidArgument: validate_node_report(). kResourceExhausted:
    // too many nodes.
    Result<NodeOrders> report(NodeReport report);

    // One that was refused before it came here.
    void count_refused() { ++state_.lock()->counts.reports_refused; }

    // The node's program is told to sweep until it says that it has, or until withdraw_sweep().
    // Replaces the order before it. The node is told of its own pools only.
    void order_sweep(const std::string& node, SweepOrder order);
    // Harmless when another order is in force.
    void withdraw_sweep(const std::string& node, const std::string& id);
    // Results of ordered sweeps since the last call, in order of arrival.
    std::vector<SweepResult> take_results();

    // The last words of all.
    [[nodiscard]] NodeReports all();

    // The node is gone from the cluster.
    void forget(const std::string& node);
    // Forgets nodes whose program was last heard of longer ago than forget_after.
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

    // Makes it the node's last word; `news`: what that changes.
    Result<std::shared_ptr<const NodeReport>> remember(
        State& state, NodeReport report, const std::vector<PoolOrder>& pools, NodeNews& news) const;
    // Takes the results over; the ids to confirm, and whether one of them was waited for.
    static std::pair<std::vector<std::string>, bool> take_sweeps(
        State& state, const NodeReport& report);

    Options options_;
    PoolsOf pools_of_;
    OnNews on_news_;
    Guarded<State> state_;
};

}  // namespace stoker::control
