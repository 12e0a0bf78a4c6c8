#include "node/service/pool_keeper.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/utf8.h"
#include "common/log/log.h"

namespace stoker::node {

namespace {

constexpr int kDirectoriesToldMax = 10'000;
constexpr std::size_t kFailuresToldMax = 5;

v1::PoolVerdict verdict_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::kAlreadyExists:
            return v1::POOL_VERDICT_NOT_EMPTY;
        case ErrorCode::kConflict:
            return v1::POOL_VERDICT_OTHER_POOL;
        case ErrorCode::kForbidden:
        case ErrorCode::kInvalidArgument:
            return v1::POOL_VERDICT_REFUSED;
        default:
            return v1::POOL_VERDICT_FAILED;
    }
}

// Parses "<namespace>/<uid>"; nullopt for any other text.
std::optional<NodeDirectoryName> parse_directory(const std::string& text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    NodeDirectoryName name{text.substr(0, slash), text.substr(slash + 1)};
    const bool good = is_path_component(name.ns) && is_path_component(name.uid);
    return good ? std::optional{std::move(name)} : std::nullopt;
}

// An order with any invalid entry must not remove anything.
Result<SweepRequest> parse_sweep(const v1::SweepOrder& order) {
    SweepRequest request;
    for (const std::string& text : order.kept()) {
        const auto name = parse_directory(text);
        if (!name) {
            return fail(
                ErrorCode::kInvalidArgument, fmt::format("'{}' is no node directory", text));
        }
        request.kept.insert(*name);
    }
    request.expired.insert(order.expired().begin(), order.expired().end());
    return request;
}

}  // namespace

void PoolKeeper::measure(const PoolDirectory& directory, Pool& pool) const {
    if (pool.measured && parts_.clock.now() - pool.measured_at < kMeasureEvery) {
        return;
    }
    const auto mounted = parts_.mounts.mounted();
    auto use = mounted ? directory.measure(*mounted)
                       : Result<std::vector<DirectoryUse>>{fail(mounted.error())};
    if (!use) {
        log::warning("pool not measured", {{"path", pool.path}, {"reason", use.error().message}});
        return;
    }
    pool.directories = *std::move(use);
    pool.measured = true;
    pool.measured_at = parts_.clock.now();
}

void PoolKeeper::look(const std::string& name, Pool& pool, v1::PoolState& state) {
    state.set_pool(name);
    state.set_path(pool.path);
    const auto directory = PoolDirectory::open(parts_.host_root, pool.path, name, parts_.user);
    const auto space =
        directory ? directory->file_system() : Result<FileSystemUse>{fail(directory.error())};
    if (!space) {
        state.set_verdict(verdict_of(space.error()));
        state.set_message(printable_utf8(space.error().message));
        return;
    }
    measure(*directory, pool);
    state.set_verdict(v1::POOL_VERDICT_READY);
    state.set_capacity_bytes(space->capacity.count());
    state.set_free_bytes(space->free.count());
    for (const DirectoryUse& use : pool.directories) {
        if (state.directories_size() >= kDirectoriesToldMax) {
            break;
        }
        auto& told = *state.add_directories();
        told.set_namespace_(use.name.ns);
        told.set_dataset_uid(use.name.uid);
        told.set_bytes(use.allocated.count());
        told.set_mounted(use.mounted);
    }
}

void PoolKeeper::fill(v1::NodeReport& report) {
    for (auto& [name, pool] : pools_) {
        look(name, pool, *report.add_pools());
    }
    for (const auto& [id, result] : sweeps_) {
        *report.add_sweeps() = result;
    }
}

void PoolKeeper::take(const v1::NodeOrders& orders) {
    std::map<std::string, Pool> pools;
    for (const auto& order : orders.pools()) {
        const auto known = pools_.find(order.pool());
        const bool same = known != pools_.end() && known->second.path == order.path();
        Pool pool = same ? std::move(known->second) : Pool{};
        pool.path = order.path();
        pools.emplace(order.pool(), std::move(pool));
    }
    pools_ = std::move(pools);
    for (const std::string& id : orders.confirmed_sweeps()) {
        sweeps_.erase(id);
    }
    if (orders.has_sweep() && !sweeps_.contains(orders.sweep().id())) {
        sweep(orders.sweep());
    }
}

void PoolKeeper::sweep(const v1::SweepOrder& order) {
    const auto run = [&]() -> Result<SweepOutcome> {
        STOKER_TRY(const SweepRequest request, parse_sweep(order));
        STOKER_TRY(
            const PoolDirectory directory,
            PoolDirectory::open(parts_.host_root, order.path(), order.pool(), parts_.user));
        STOKER_TRY(const auto mounted, parts_.mounts.mounted());
        return directory.sweep(request, mounted, parts_.clock.wall_now());
    };
    Result<SweepOutcome> outcome = run();
    v1::SweepResult& result = sweeps_[order.id()];
    result.set_id(order.id());
    if (!outcome) {
        result.set_message(printable_utf8(outcome.error().message));
    } else {
        outcome->failures.resize(std::min(outcome->failures.size(), kFailuresToldMax));
        result.set_removed(outcome->removed);
        result.set_succeeded(outcome->failures.empty());
        result.set_message(printable_utf8(fmt::format("{}", fmt::join(outcome->failures, "; "))));
    }
    for (auto& [name, pool] : pools_) {
        pool.measured = false;
    }
    log::info(
        "swept",
        {{"pool", order.pool()},
         {"removed", result.removed()},
         {"succeeded", result.succeeded()},
         {"message", result.message()}});
}

}  // namespace stoker::node
