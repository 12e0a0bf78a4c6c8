#include "operator/core/allocation/shared_reads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stoker::control {

namespace {

constexpr double kRateMin = 1e-9;  // of a dataset of unknown size
// The planner's work for a group grows with its nodes and with the square of its jobs. This much, over
// all groups of a pool, takes some 0.2 s of a core.
constexpr double kWorkMax = 256.0 * 256 * 256;

using NodesByName = std::unordered_map<std::string_view, std::size_t>;

// One group of peers, as far as its nodes belong to the pool.
struct Group {
    std::uint64_t owners = 0;              // number of nodes, also outside the pool
    std::vector<std::size_t> nodes;        // in the pool
    std::vector<Claim*> claims;            // on these nodes
    std::map<std::size_t, ClaimUser> all;  // by job: one user with the rates of all nodes

    [[nodiscard]] double work() const {
        const auto jobs = static_cast<double>(all.size());
        return static_cast<double>(claims.size()) * jobs * jobs;
    }
};

Group find_group(const PeerNodes& peers, const NodesByName& nodes, ClaimsByPlace& claims) {
    const std::set<std::string> names{peers.nodes.begin(), peers.nodes.end()};
    Group group{names.size(), {}, {}, {}};
    for (const std::string& name : names) {
        const auto known = nodes.find(name);
        if (known == nodes.end()) {
            continue;
        }
        const std::size_t node = known->second;
        group.nodes.push_back(node);
        const auto claim = claims.find({node, peers.dataset_uid});
        if (claim == claims.end()) {
            continue;
        }
        claim->second.node = node;
        group.claims.push_back(&claim->second);
        for (const ClaimUser& user : claim->second.users) {
            const auto [job, is_new] = group.all.try_emplace(user.job, user);
            job->second.rate += is_new ? 0 : user.rate;
        }
    }
    return group;
}

// Bytes of one owner, rounded up.
Bytes part_of(Bytes all, std::uint64_t owners) {
    return all.is_unlimited() ? all
                              : Bytes{all.count() / owners + (all.count() % owners == 0 ? 0 : 1)};
}

// Bytes of the group that do not fit on the nodes that own them. `part`: bytes that each node owns.
Bytes lacking_in_all(const Group& group, const ClaimTable& table, Bytes part) {
    Bytes lacking{};
    for (const std::size_t node : group.nodes) {
        lacking += part - table.nodes[node].capacity;
    }
    return lacking;
}

// Fraction (0..1) of the bytes owned by the other nodes that does not fit on those nodes.
double lacking_without(
    const Group& group, const ClaimTable& table, const Claim& claim, Bytes in_all) {
    const Bytes part = part_of(claim.size, group.owners);
    const Bytes lacking = in_all - (part - table.nodes[claim.node].capacity);
    const auto others = static_cast<double>((part * (group.owners - 1)).count());
    return others > 0 ? static_cast<double>(lacking.count()) / others : 0;
}

// Four standard deviations of the bytes that a random n-th of the samples has, for sizes that vary as
// much as their mean.
Bytes uneven_bytes(Bytes part, double sample_bytes) {
    constexpr double kDeviations = 4;
    const double variance = 2 * static_cast<double>(part.count()) * sample_bytes;
    const double bytes = variance > 0 ? kDeviations * std::sqrt(variance) : 0;
    return bytes < static_cast<double>(part.count()) ? Bytes{static_cast<std::uint64_t>(bytes)}
                                                     : part;
}

// The claim's node fetches the samples that it owns for the whole group: sets the claim's users to
// all jobs of the group, with their reads of these samples.
void take_part(const ClaimTable& table, const Group& group, double lacking, Claim& claim) {
    const Bytes part = part_of(claim.size, group.owners);
    std::map<std::size_t, ClaimUser> here;
    for (const ClaimUser& user : claim.users) {
        here.emplace(user.job, user);
    }
    for (const auto& [job, all] : group.all) {
        if (table.jobs[job].is_fill() && !here.contains(job)) {
            continue;  // a fill asks no other node
        }
        const auto [entry, is_remote] = here.try_emplace(job, all);
        ClaimUser& user = entry->second;
        user.own_rate = is_remote ? 0 : user.rate;
        user.lacking = is_remote ? 0 : lacking;
        user.owners = group.owners;
        user.rate = all.rate / static_cast<double>(group.owners);
        user.ahead = part_of(user.ahead, group.owners);
        user.uneven =
            uneven_bytes(part, table.jobs[job].demand->datasets[user.dataset].sample_bytes);
        if (is_remote) {
            user.remote = true;
            user.minimum = Bytes::zero();
            user.fixed = Bytes::zero();
            user.wanted = std::min(user.wanted, part + user.uneven);
        }
    }
    claim.users.clear();
    for (auto& entry : here) {
        claim.users.push_back(std::move(entry.second));
    }
}

bool is_windowed(const ClaimTable& table, const ClaimUser& user) {
    const Demand& demand = *table.jobs[user.job].demand;
    return !user.remote && demand.datasets[user.dataset].access.kind == AccessKind::kWindowed;
}

}  // namespace

void share_fetches(const ClaimTable& table, ClaimsByPlace& claims) {
    for (auto& entry : claims) {
        double fastest = kRateMin;
        double sum = 0;
        for (const ClaimUser& user : entry.second.users) {
            fastest = std::max(fastest, is_windowed(table, user) ? user.rate : 0);
            sum += is_windowed(table, user) ? std::max(user.rate, kRateMin) : 0;
        }
        for (ClaimUser& user : entry.second.users) {
            user.fetched = is_windowed(table, user) ? fastest / sum : 1;
        }
    }
}

void pool_peers(const AllocationView& view, const ClaimTable& table, ClaimsByPlace& claims) {
    NodesByName nodes;
    for (std::size_t node = 0; node < table.nodes.size(); ++node) {
        nodes.emplace(table.nodes[node].name, node);
    }
    std::vector<Group> groups;
    for (const PeerNodes& peers : view.peers) {
        groups.push_back(find_group(peers, nodes, claims));
    }
    std::erase_if(groups, [](const Group& group) { return group.owners < 2; });
    std::ranges::stable_sort(groups, {}, &Group::work);
    double work = 0;
    for (const Group& group : groups) {
        work += group.work();
        if (work > kWorkMax) {
            return;
        }
        std::map<Bytes, Bytes> lacking;  // lacking_in_all(), by the size of a part
        for (Claim* claim : group.claims) {
            const Bytes part = part_of(claim->size, group.owners);
            const auto [known, is_new] = lacking.try_emplace(part);
            if (is_new) {
                known->second = lacking_in_all(group, table, part);
            }
            take_part(table, group, lacking_without(group, table, *claim, known->second), *claim);
        }
    }
}

}  // namespace stoker::control
