#include "operator/sidecars/node_codec.h"

#include "proto/node/v1/node.pb.h"

namespace stoker::control {

namespace {

namespace wire = stoker::node::v1;

PoolVerdict decode(wire::PoolVerdict verdict) {
    switch (verdict) {
        case wire::POOL_VERDICT_READY:
            return PoolVerdict::kReady;
        case wire::POOL_VERDICT_NOT_EMPTY:
            return PoolVerdict::kNotEmpty;
        case wire::POOL_VERDICT_OTHER_POOL:
            return PoolVerdict::kOtherPool;
        case wire::POOL_VERDICT_REFUSED:
            return PoolVerdict::kRefused;
        case wire::POOL_VERDICT_FAILED:
            return PoolVerdict::kFailed;
        default:
            return PoolVerdict::kUnknown;
    }
}

PoolState decode(const wire::PoolState& pool) {
    PoolState result;
    result.pool = pool.pool();
    result.path = pool.path();
    result.verdict = decode(pool.verdict());
    result.message = pool.message();
    result.capacity = Bytes{pool.capacity_bytes()};
    result.free = Bytes{pool.free_bytes()};
    for (const wire::DirectoryUse& use : pool.directories()) {
        result.directories.push_back(
            {use.namespace_(), use.dataset_uid(), Bytes{use.bytes()}, use.mounted()});
    }
    return result;
}

void encode(const SweepOrder& order, wire::SweepOrder& out) {
    out.set_id(order.id);
    out.set_pool(order.pool);
    out.set_path(order.path);
    for (const std::string& kept : order.kept) {
        out.add_kept(kept);
    }
    for (const std::string& expired : order.expired) {
        out.add_expired(expired);
    }
}

}  // namespace

NodeReport decode(const wire::NodeReport& report) {
    NodeReport result;
    result.node = report.node();
    result.boot_id = report.boot_id();
    result.version = report.version();
    for (const wire::PoolState& pool : report.pools()) {
        result.pools.push_back(decode(pool));
    }
    for (const wire::SweepResult& sweep : report.sweeps()) {
        result.sweeps.push_back({sweep.id(), sweep.succeeded(), sweep.message(), sweep.removed()});
    }
    return result;
}

wire::NodeOrders encode(const NodeOrders& orders) {
    wire::NodeOrders result;
    for (const PoolOrder& pool : orders.pools) {
        wire::PoolOrder& out = *result.add_pools();
        out.set_pool(pool.pool);
        out.set_path(pool.path);
    }
    if (orders.sweep) {
        encode(*orders.sweep, *result.mutable_sweep());
    }
    result.set_next_call_seconds(orders.next_call_seconds);
    for (const std::string& id : orders.confirmed_sweeps) {
        result.add_confirmed_sweeps(id);
    }
    return result;
}

}  // namespace stoker::control
