#include "operator/core/allocation/what_if.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "operator/core/allocation/plan_allocation.h"

namespace stoker::control {

namespace {

std::uint64_t count_nodes(const AllocationView& view, const std::string& pool) {
    return static_cast<std::uint64_t>(
        std::count_if(view.nodes.begin(), view.nodes.end(), [&](const PoolNode& node) {
            return node.pool == pool;
        }));
}

std::string list_or_none(const std::set<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Status apply(const AddCapacity& change, AllocationView& view) {
    const std::uint64_t nodes = count_nodes(view, change.pool);
    if (nodes == 0) {
        std::set<std::string> pools;
        for (const PoolNode& node : view.nodes) {
            pools.insert(node.pool);
        }
        return fail(
            ErrorCode::kNotFound,
            fmt::format(
                "no node is in pool {}; pools with nodes: {}", change.pool, list_or_none(pools)));
    }
    const Bytes part{change.bytes.count() / nodes};
    for (PoolNode& node : view.nodes) {
        if (node.pool == change.pool) {
            node.capacity = change.less ? node.capacity - part : node.capacity + part;
        }
    }
    return {};
}

Status apply(const RemoveJob& change, AllocationView& view) {
    std::set<std::string> jobs;
    for (const Demand& demand : view.demands) {
        jobs.insert(to_string(demand.job));
    }
    if (!jobs.contains(to_string(change.job))) {
        return fail(
            ErrorCode::kNotFound,
            fmt::format(
                "no job {} uses a cache now; jobs that do: {}",
                to_string(change.job),
                list_or_none(jobs)));
    }
    std::erase_if(view.demands, [&](const Demand& demand) { return demand.job == change.job; });
    return {};
}

Status apply(const SetNominal& change, AllocationView& view) {
    std::set<std::string> quotas;
    for (QuotaView& quota : view.quotas) {
        if (quota.ns == change.ns && quota.pool == change.pool) {
            quota.nominal = change.nominal;
            return {};
        }
        quotas.insert(fmt::format("{} in {}", quota.ns, quota.pool));
    }
    return fail(
        ErrorCode::kNotFound,
        fmt::format(
            "namespace {} has no CacheQuota in force for pool {}; quotas in force: {}",
            change.ns,
            change.pool,
            list_or_none(quotas)));
}

using Place = std::pair<std::string, std::string>;  // node, dataset uid

struct Use {
    std::string pool;
    std::string ns;  // of the dataset
};

// Datasets that jobs use, by node.
std::map<Place, Use> uses_of(const AllocationView& view) {
    std::map<Place, Use> result;
    for (const Demand& demand : view.demands) {
        for (const std::string& node : demand.nodes) {
            for (const DemandDataset& dataset : demand.datasets) {
                const std::string& owner = dataset.ns.empty() ? demand.job.ns : dataset.ns;
                result.emplace(Place{node, dataset.uid}, Use{demand.pool, owner});
            }
        }
    }
    return result;
}

std::optional<Bytes> target_of(
    const AllocationPlan& plan, const std::string& pool, const Grant& grant) {
    const auto place = std::tie(pool, grant.node, grant.dataset_uid);
    const auto place_of = [](const Target& target) {
        return std::tie(target.pool, target.node, target.dataset_uid);
    };
    const auto found = std::ranges::lower_bound(plan.targets, place, {}, place_of);
    const bool is_there = found != plan.targets.end() && place_of(*found) == place;
    return is_there ? std::optional(found->bytes) : std::nullopt;
}

// Applies the plan: every used dataset holds its grant, and swept bytes are gone.
void carry_out(const AllocationPlan& plan, AllocationView& view) {
    const std::map<Place, Use> uses = uses_of(view);
    std::erase_if(view.holdings, [&](const Holding& holding) {
        const bool swept = std::ranges::any_of(plan.sweeps, [&](const Sweep& sweep) {
            return std::tie(sweep.pool, sweep.node, sweep.dataset_uid) ==
                   std::tie(holding.pool, holding.node, holding.dataset_uid);
        });
        return swept || uses.contains({holding.node, holding.dataset_uid});
    });
    for (const Grant& grant : plan.grants) {
        const auto use = uses.find({grant.node, grant.dataset_uid});
        if (use == uses.end()) {
            continue;
        }
        const std::string& pool = use->second.pool;
        const Bytes bytes = grant.resident_bytes;
        Holding holding{pool, grant.node, grant.dataset_uid, bytes, bytes, bytes};
        holding.ns = use->second.ns;
        holding.target = target_of(plan, pool, grant);
        view.holdings.push_back(std::move(holding));
    }
}

}  // namespace

std::string describe(const Change& change, const AllocationView& view) {
    if (const auto* add = std::get_if<AddCapacity>(&change)) {
        const std::uint64_t nodes = std::max<std::uint64_t>(count_nodes(view, add->pool), 1);
        return fmt::format(
            "{} {} in pool {} ({} on each of {} node{})",
            to_string(add->bytes),
            add->less ? "less" : "more",
            add->pool,
            to_string(Bytes{add->bytes.count() / nodes}),
            nodes,
            nodes == 1 ? "" : "s");
    }
    if (const auto* removed = std::get_if<RemoveJob>(&change)) {
        return fmt::format("without job {}", to_string(removed->job));
    }
    const auto& quota = std::get<SetNominal>(change);
    return fmt::format(
        "a nominal quota of {} for namespace {} in pool {}",
        to_string(quota.nominal),
        quota.ns,
        quota.pool);
}

Status apply_change(const Change& change, AllocationView& view) {
    return std::visit([&view](const auto& kind) { return apply(kind, view); }, change);
}

Outcome settle(AllocationView view) {
    Outcome result{std::move(view), {}, false};
    result.view.settled = true;
    const std::map<Place, Use> uses = uses_of(result.view);
    for (Holding& holding : result.view.holdings) {
        // Grants of datasets that nobody reads expire.
        const bool is_used = uses.contains({holding.node, holding.dataset_uid});
        holding.in_flight = false;
        holding.uncounted = false;
        holding.outstanding =
            is_used ? std::min(holding.outstanding, holding.granted) : holding.resident;
    }
    result.plan = plan_allocation(result.view);
    for (int round = 1; round < kSettleRoundsMax && !result.at_rest; ++round) {
        carry_out(result.plan, result.view);
        AllocationPlan next = plan_allocation(result.view);
        result.at_rest = next == result.plan;
        result.plan = std::move(next);
    }
    return result;
}

}  // namespace stoker::control
