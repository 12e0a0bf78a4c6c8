#include "operator/core/view/warmups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

bool is_of(const DatasetWarmup& warmup, const Dataset& dataset) {
    return warmup.meta.ns == dataset.meta.ns && warmup.spec.dataset_ref == dataset.meta.name;
}

// The chosen nodes that are not Gone.
std::set<std::string> living_nodes(const DatasetWarmup& warmup) {
    std::set<std::string> nodes;
    for (const WarmupNodeStatus& node : warmup.status.nodes) {
        if (node.state != kWarmupNodeGone) {
            nodes.insert(node.node);
        }
    }
    return nodes;
}

// The places of this Dataset's warm-ups that are `wanted`.
template <class Wanted>
std::set<FillerPlace> places_of(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups, Wanted wanted) {
    std::set<FillerPlace> places;
    for (const DatasetWarmup& warmup : warmups) {
        if (is_of(warmup, dataset) && wanted(warmup)) {
            for (const std::string& node : living_nodes(warmup)) {
                places.insert({warmup.status.pool, node});
            }
        }
    }
    return places;
}

// The nodes that are neither Done nor Gone nor Lost.
std::set<std::string> open_nodes(const DatasetWarmup& warmup) {
    std::set<std::string> nodes;
    for (const WarmupNodeStatus& node : warmup.status.nodes) {
        if (node.state != kWarmupNodeDone && node.state != kWarmupNodeGone &&
            node.state != kWarmupNodeLost) {
            nodes.insert(node.node);
        }
    }
    return nodes;
}

// Rate limit of each of `open` nodes; 0: none.
std::uint64_t rate_per_node(const DatasetWarmup& warmup, std::size_t open) {
    if (!warmup.spec.rate_limit) {
        return 0;
    }
    const std::size_t parts = std::max<std::size_t>(open, 1);
    return std::max<std::uint64_t>(warmup.spec.rate_limit->count() / parts, 1);
}

// The report of an attached leader on the node; nullptr: none.
const DatasetReport* find_leader(
    const std::vector<SidecarReport>& reports,
    const std::string& node,
    const std::string& uid,
    const Moment& now) {
    for (const SidecarReport& report : reports) {
        if (report.node != node || !report.attached || !is_fresh(report, now)) {
            continue;
        }
        for (const DatasetReport& dataset : report.datasets) {
            if (dataset.dataset_uid == uid && dataset.leader) {
                return &dataset;
            }
        }
    }
    return nullptr;
}

class FillOrders {
public:
    FillOrders(
        const ClusterView& cluster,
        const std::map<std::string, PeerGroup>& groups,
        const std::vector<FillOrigin>& origins,
        const Moment& now)
        : cluster_(cluster),
          groups_(groups),
          now_(now) {
        for (const Dataset& dataset : cluster.datasets) {
            datasets_[dataset.meta.key()] = &dataset;
        }
        for (const DatasetWarmup& warmup : cluster.warmups) {
            if (is_filling(warmup)) {
                add(warmup);
            }
        }
        for (const FillOrigin& origin : origins) {
            keep_within(origin);
        }
    }

    [[nodiscard]] std::optional<FillOrder> find(
        const std::string& node, const std::string& uid) const {
        const auto found = orders_.find({node, uid});
        return found == orders_.end() ? std::nullopt : std::optional(found->second.fill);
    }

private:
    struct Order {
        FillOrder fill;
        std::string pool;
        bool open = false;  // the warm-up of this node is not Done
    };

    void add(const DatasetWarmup& warmup) {
        const auto found = datasets_.find({warmup.meta.ns, warmup.spec.dataset_ref});
        if (found == datasets_.end()) {
            return;
        }
        const Dataset& dataset = *found->second;
        const bool waits =
            now_.wall - warmup.status.start_time.value_or(now_.wall) < kWarmupStartWait;
        const std::set<std::string> nodes = living_nodes(warmup);
        std::vector<std::string> ready;
        std::ranges::copy_if(nodes, std::back_inserter(ready), [&](const std::string& node) {
            return is_ready(node, dataset);
        });
        if (waits && ready.size() < nodes.size()) {
            return;
        }
        const std::set<std::string> open = open_nodes(warmup);
        const std::uint64_t rate = rate_per_node(warmup, open.size());
        for (const std::string& node : ready) {
            const auto [order, is_new] = orders_.try_emplace(
                {node, dataset.meta.uid}, Order{FillOrder{rate}, warmup.status.pool});
            std::uint64_t& most = order->second.fill.origin_bytes_per_second;
            most = !is_new && (rate == 0 || most == 0) ? 0 : std::max(most, rate);
            order->second.open |= open.contains(node);
        }
    }

    // A job without a profile counts as much as a fill. A done node may fetch what it has lost.
    void keep_within(const FillOrigin& origin) {
        const auto open = std::ranges::count_if(orders_, [&](const auto& entry) {
            return entry.second.open && entry.second.pool == origin.pool;
        });
        const std::uint64_t parts = static_cast<std::uint64_t>(open) + origin.unprofiled;
        const std::uint64_t most =
            std::max<std::uint64_t>(origin.bytes_per_second / std::max<std::uint64_t>(parts, 1), 1);
        for (auto& entry : orders_) {
            std::uint64_t& rate = entry.second.fill.origin_bytes_per_second;
            if (entry.second.pool == origin.pool) {
                rate = rate == 0 ? most : std::min(rate, most);
            }
        }
    }

    // Whether the node's leader has the list of samples, and the group that assigns it its own.
    [[nodiscard]] bool is_ready(const std::string& node, const Dataset& dataset) const {
        const std::string& uid = dataset.meta.uid;
        const DatasetReport* leader = find_leader(cluster_.reports, node, uid, now_);
        if (leader == nullptr || leader->manifest_state != ManifestState::kReady) {
            return false;
        }
        const auto group = groups_.find(uid);
        if (leader->peer_address.empty() || !shares_by_peers(dataset.spec)) {
            return true;
        }
        return group != groups_.end() && leader->peer_group_version == group->second.version &&
               std::ranges::any_of(group->second.members, [&](const PeerMember& member) {
                   return member.node == node;
               });
    }

    const ClusterView& cluster_;
    const std::map<std::string, PeerGroup>& groups_;
    const Moment& now_;
    std::map<ObjectKey, const Dataset*> datasets_;
    std::map<std::pair<std::string, std::string>, Order> orders_;  // by node and dataset uid
};

}  // namespace

bool is_finished(const DatasetWarmup& warmup) {
    const std::vector<Condition>& conditions = warmup.status.conditions;
    return is_true(conditions, std::string{kWarmupComplete}) ||
           is_true(conditions, std::string{kWarmupFailed});
}

bool is_filling(const DatasetWarmup& warmup) {
    return !warmup.status.nodes.empty() && !warmup.spec.suspend && !warmup.meta.deleting_since &&
           !is_finished(warmup);
}

bool needs_fillers(const DatasetWarmup& warmup, WallTime now) {
    const auto ttl = std::chrono::seconds{
        std::clamp<std::int64_t>(warmup.spec.ttl_seconds_after_finished.value_or(0), 0, INT32_MAX)};
    const std::optional<WallTime> ended = warmup.status.completion_time;
    return is_filling(warmup) || (is_finished(warmup) && !warmup.meta.deleting_since &&
                                  !warmup.spec.suspend && ended && now - *ended < ttl);
}

bool asks_the_same(const DatasetWarmup& a, const DatasetWarmup& b) {
    const auto same_node = [](const WarmupNodeStatus& one, const WarmupNodeStatus& other) {
        return one.node == other.node && one.state == other.state &&
               one.silent_since == other.silent_since;
    };
    return a.spec == b.spec && a.meta.deleting_since == b.meta.deleting_since &&
           is_finished(a) == is_finished(b) && a.status.pool == b.status.pool &&
           a.status.start_time == b.status.start_time &&
           a.status.completion_time == b.status.completion_time &&
           std::ranges::equal(a.status.nodes, b.status.nodes, same_node);
}

std::set<FillerPlace> warmup_places(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups, WallTime now) {
    return places_of(
        dataset, warmups, [&](const DatasetWarmup& it) { return needs_fillers(it, now); });
}

std::set<FillerPlace> open_places(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups) {
    return places_of(dataset, warmups, is_filling);
}

std::map<FillerPlace, WallTime> runs_by_place(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups) {
    std::map<FillerPlace, WallTime> runs;
    for (const DatasetWarmup& warmup : warmups) {
        const std::optional<WallTime> run = warmup.status.last_schedule_time;
        if (!run || !is_of(warmup, dataset) || !is_filling(warmup)) {
            continue;
        }
        for (const std::string& node : living_nodes(warmup)) {
            WallTime& newest = runs.try_emplace({warmup.status.pool, node}, *run).first->second;
            newest = std::max(newest, *run);
        }
    }
    return runs;
}

std::set<std::string> filling_nodes(
    const Dataset& dataset,
    const std::string& pool,
    const std::vector<DatasetWarmup>& warmups,
    const std::vector<SidecarReport>& reports,
    WallTime now) {
    std::set<std::string> nodes;
    for (const FillerPlace& place : warmup_places(dataset, warmups, now)) {
        if (place.pool == pool) {
            nodes.insert(place.node);
        }
    }
    for (const SidecarReport& report : reports) {
        for (const DatasetReport& told : report.datasets) {
            if (report.attached && told.dataset_uid == dataset.meta.uid && told.fill) {
                nodes.insert(report.node);
            }
        }
    }
    return nodes;
}

void order_fills(
    const ClusterView& cluster,
    const std::map<std::string, PeerGroup>& groups,
    const std::vector<FillOrigin>& origins,
    const Moment& now,
    std::vector<Grant>& grants) {
    const FillOrders orders{cluster, groups, origins, now};
    for (Grant& grant : grants) {
        grant.fill = orders.find(grant.node, grant.dataset_uid);
    }
}

std::vector<std::string> choose_nodes(
    const DatasetWarmupSpec& spec,
    const CachePool& pool,
    const std::vector<Node>& nodes,
    const Dataset& dataset) {
    std::map<std::string, std::int64_t> held;
    for (const DatasetPlacement& placement : dataset.status.placements) {
        held[placement.node] += placement.pool == pool.meta.name ? placement.bytes : 0;
    }
    const std::vector<std::string>& names = spec.nodes.names;
    std::vector<std::string> result;
    for (const Node& node : nodes) {
        const bool is_named =
            names.empty() || std::ranges::find(names, node.meta.name) != names.end();
        if (is_named && node.ready && matches(pool.spec.node_selector, node.meta.labels) &&
            selects(spec.nodes.selector.value_or(LabelSelector{}), node.meta.labels)) {
            result.push_back(node.meta.name);
        }
    }
    std::ranges::sort(result);
    const auto most = std::min<std::size_t>(
        static_cast<std::size_t>(
            std::max<std::int64_t>(spec.nodes.count.value_or(kWarmupNodeCountMax), 0)),
        kWarmupNodeCountMax);
    if (result.size() > most) {
        std::ranges::stable_sort(
            result, std::ranges::greater{}, [&](const std::string& node) { return held[node]; });
        result.resize(most);
        std::ranges::sort(result);
    }
    return result;
}

bool makes_room(
    const std::vector<Sweep>& sweeps,
    const DatasetWarmup& warmup,
    const std::vector<Dataset>& datasets) {
    return std::ranges::any_of(sweeps, [&](const Sweep& sweep) {
        const auto is_of_node = [&](const auto& node) { return node.node == sweep.node; };
        const auto is_swept = [&](const Dataset& dataset) {
            return dataset.meta.uid == sweep.dataset_uid;
        };
        return sweep.pool == warmup.status.pool &&
               (std::ranges::any_of(warmup.status.nodes, is_of_node) ||
                std::ranges::any_of(datasets, is_swept));
    });
}

ResolvedPool resolve_pool(
    const DatasetWarmup& warmup,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas) {
    TrainingJob job;
    job.meta.ns = warmup.meta.ns;
    job.spec.cache.pool_ref = warmup.spec.pool_ref;
    return resolve_pool(job, pools, quotas);
}

}  // namespace stoker::control
