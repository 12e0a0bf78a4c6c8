#include "operator/sidecars/node_rules.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

namespace stoker::control {

namespace {

Status validate_count(std::string_view what, std::size_t count, std::size_t count_max) {
    if (count > count_max) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("more than {} {}", count_max, what));
    }
    return {};
}

Status validate_number(std::string_view what, std::uint64_t number) {
    if (number > kNodeNumberMax) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{} is out of range", what));
    }
    return {};
}

Status validate_pool(const PoolState& pool) {
    STOKER_TRY_VOID(validate_name("pool", pool.pool));
    STOKER_TRY_VOID(validate_text("path", pool.path, kNodePathBytesMax));
    STOKER_TRY_VOID(validate_number("capacity_bytes", pool.capacity.count()));
    STOKER_TRY_VOID(validate_number("free_bytes", pool.free.count()));
    STOKER_TRY_VOID(validate_count("directories", pool.directories.size(), kNodeDirectoryCountMax));
    for (const DirectoryUse& use : pool.directories) {
        STOKER_TRY_VOID(validate_name("namespace", use.ns));
        STOKER_TRY_VOID(validate_name("dataset_uid", use.dataset_uid));
        STOKER_TRY_VOID(validate_number("bytes", use.bytes.count()));
    }
    return {};
}

}  // namespace

Status validate_node_report(const NodeReport& report) {
    STOKER_TRY_VOID(validate_name("node", report.node));
    STOKER_TRY_VOID(validate_text("boot_id", report.boot_id, kNameBytesMax));
    STOKER_TRY_VOID(validate_text("version", report.version, kNameBytesMax));
    STOKER_TRY_VOID(validate_count("pools", report.pools.size(), kNodePoolCountMax));
    STOKER_TRY_VOID(validate_count("sweeps", report.sweeps.size(), kNodeSweepCountMax));
    std::set<std::string_view> names;
    for (const PoolState& pool : report.pools) {
        STOKER_TRY_VOID(validate_pool(pool));
        if (!names.insert(pool.pool).second) {
            return fail(ErrorCode::kInvalidArgument, "a pool is reported more than once");
        }
    }
    for (const SweepResult& sweep : report.sweeps) {
        STOKER_TRY_VOID(validate_name("sweep id", sweep.id));
        STOKER_TRY_VOID(validate_number("removed", sweep.removed));
    }
    return {};
}

void trim_texts(NodeReport& report) {
    for (PoolState& pool : report.pools) {
        trim(pool.message);
    }
    for (SweepResult& sweep : report.sweeps) {
        trim(sweep.message);
    }
}

Status check_node_program(const PodIdentity& identity, const NodeProgramAccount& account) {
    if (identity.namespace_name == account.ns &&
        identity.service_account == account.service_account) {
        return {};
    }
    return fail(
        ErrorCode::kForbidden,
        fmt::format(
            "only ServiceAccount {}/{} may report for nodes, not {}/{}",
            account.ns,
            account.service_account,
            identity.namespace_name,
            identity.service_account));
}

Status check_node(
    const PodIdentity& identity, const std::string& pod_node, const std::string& reported) {
    const std::string& node = identity.node.empty() ? pod_node : identity.node;
    if (node.empty()) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("the node of pod {} is not known yet; try again", identity.pod));
    }
    if (node != reported) {
        return fail(
            ErrorCode::kForbidden,
            fmt::format(
                "pod {} runs on node {} and may not report for {:.64}",
                identity.pod,
                node,
                reported));
    }
    return {};
}

}  // namespace stoker::control
