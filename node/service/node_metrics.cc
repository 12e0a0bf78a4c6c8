#include "node/service/node_metrics.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace stoker::node {

namespace {

// 1 ms to 131 s: the kubelet's own limit is two minutes.
std::vector<double> csi_bounds() {
    constexpr double kFirst = 1e-3;
    constexpr double kFactor = 2;
    constexpr std::size_t kCount = 18;
    return metrics::exponential_bounds(kFirst, kFactor, kCount);
}

}  // namespace

NodeMetrics::NodeMetrics()
    : csi_seconds_(registry_.histogram_family(
          "stoker_node_csi_seconds",
          "Duration of the kubelet's calls: mounting and unmounting views, by gRPC code.",
          {"method_name", "grpc_status_code"},
          csi_bounds())),
      reports_(registry_.counter_family(
          "stoker_node_calls_total",
          "Calls to the operator, by result: answered or failed.",
          {"result"})),
      pool_ready_(registry_.gauge_family(
          "stoker_node_pool_ready",
          "1 while the pool's directory on this node can be used.",
          {"pool"})),
      pool_used_(registry_.gauge_family(
          "stoker_node_pool_used_bytes",
          "Allocated bytes of the pool's node directories on this node.",
          {"pool"})),
      pool_free_(registry_.gauge_family(
          "stoker_node_pool_free_bytes", "Free bytes of the pool's file system.", {"pool"})),
      pool_directories_(registry_.gauge_family(
          "stoker_node_pool_directories",
          "Node directories of the pool on this node, mounted into a pod or not.",
          {"pool", "mounted"})) {}

void NodeMetrics::observe_csi(const std::string& method, const std::string& code, Duration took) {
    csi_seconds_.with({method, code})->observe(std::chrono::duration<double>(took).count());
}

void NodeMetrics::observe_report(const v1::NodeReport& report, bool answered) {
    reports_.with({answered ? "answered" : "failed"})->add();
    for (const std::string& former : std::exchange(pools_, {})) {
        const auto is_it = [&](const v1::PoolState& pool) { return pool.pool() == former; };
        if (std::ranges::none_of(report.pools(), is_it)) {
            forget_pool(former);
        }
    }
    for (const v1::PoolState& pool : report.pools()) {
        pools_.insert(pool.pool());
        double used = 0;
        double mounted = 0;
        for (const v1::DirectoryUse& directory : pool.directories()) {
            used += static_cast<double>(directory.bytes());
            mounted += directory.mounted() ? 1 : 0;
        }
        const bool ready = pool.verdict() == v1::POOL_VERDICT_READY;
        pool_ready_.with({pool.pool()})->set(ready ? 1 : 0);
        pool_used_.with({pool.pool()})->set(used);
        pool_free_.with({pool.pool()})->set(static_cast<double>(pool.free_bytes()));
        pool_directories_.with({pool.pool(), "true"})->set(mounted);
        pool_directories_.with({pool.pool(), "false"})->set(pool.directories_size() - mounted);
    }
}

void NodeMetrics::forget_pool(const std::string& pool) {
    for (metrics::GaugeFamily* family : {&pool_ready_, &pool_used_, &pool_free_}) {
        family->remove({pool});
    }
    for (const char* mounted : {"true", "false"}) {
        pool_directories_.remove({pool, mounted});
    }
}

std::string NodeMetrics::expose() {
    process_.collect();
    return registry_.expose();
}

}  // namespace stoker::node
