#include "operator/core/plan_grants.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "operator/core/level_fill.h"

namespace stoker::control {

namespace {

using PoolNodeKey = std::pair<std::string, std::string>;  // pool, node
using QuotaKey = std::pair<std::string, std::string>;     // namespace, pool

Bytes sum(const std::vector<Bytes>& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), Bytes::zero());
}

// One dataset on one node of one pool. Several jobs may share it; it is granted and charged once.
struct ClaimKey {
    std::string pool;
    std::string node;
    std::string uid;

    auto operator<=>(const ClaimKey&) const = default;
};

struct Claim {
    std::string ns;
    Bytes granted{};
    Bytes resident{};
    Bytes held_before{};  // the last grant
    std::uint64_t users = 0;
};

// What one job wants of one claim.
struct Want {
    ClaimKey key;
    std::size_t dataset = 0;  // index in the demand
    Bytes wanted{};
    Bytes minimum{};
};

struct JobWants {
    const Demand* demand = nullptr;
    std::vector<Want> wants;  // sorted by key
    bool on_a_node = false;
    bool size_unknown = false;
    bool quota_limited = false;
    bool node_limited = false;
    bool stopped = false;
};

class Planner {
public:
    explicit Planner(const AllocationView& view);

    AllocationPlan plan();

private:
    void add_job(const Demand& demand);
    void add_want(
        JobWants& job, const ClaimKey& key, std::size_t dataset, Bytes wanted, Bytes minimum);
    void add_holdings();
    void grow(JobWants& job, bool to_minimum);
    void shrink_before_growing();
    [[nodiscard]] StopPolicy stop_policy(const Demand& demand) const;
    [[nodiscard]] Bytes quota_left(const QuotaKey& key) const;
    [[nodiscard]] JobAllocation allocation_of(const JobWants& job) const;
    [[nodiscard]] QuotaCharge charge_of(const JobWants& job) const;
    [[nodiscard]] std::vector<AgentGrant> grants() const;

    const AllocationView& view_;
    std::map<PoolNodeKey, Bytes> capacity_;
    std::map<QuotaKey, QuotaView> quotas_;
    std::map<std::string, StopPolicy> stops_;
    std::map<ClaimKey, Claim> claims_;
    std::map<PoolNodeKey, Bytes> idle_;  // bytes of datasets that nobody uses
    std::map<PoolNodeKey, Bytes> node_free_;
    std::map<QuotaKey, Bytes> quota_free_;
    std::vector<JobWants> jobs_;  // oldest first
};

// The job's wish for each dataset on each node, from what it may have there in all.
std::vector<Bytes> wishes(const Demand& demand, Bytes node_budget) {
    std::vector<Bytes> sizes;
    for (const DemandDataset& dataset : demand.datasets) {
        const Bytes unknown = demand.mode == CacheMode::kFixed ? Bytes::unlimited() : Bytes::zero();
        sizes.push_back(dataset.total.value_or(unknown));
    }
    std::vector<Bytes> result = level_fill(sizes, node_budget);
    if (demand.mode != CacheMode::kFixed) {
        return result;
    }
    // Fixed means exactly so many bytes: what the datasets do not need is spread over them.
    const std::vector<Bytes> everything(result.size(), Bytes::unlimited());
    const std::vector<Bytes> rest = level_fill(everything, node_budget - sum(result));
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] += rest[i];
    }
    return result;
}

Planner::Planner(const AllocationView& view)
    : view_(view) {
    for (const PoolNode& node : view.nodes) {
        capacity_[{node.pool, node.node}] = node.capacity;
    }
    for (const QuotaView& quota : view.quotas) {
        quotas_[{quota.ns, quota.pool}] = quota;
    }
    for (const PoolStop& stop : view.pools) {
        stops_[stop.pool] = stop.policy;
    }
    std::vector<const Demand*> oldest_first;
    for (const Demand& demand : view.demands) {
        oldest_first.push_back(&demand);
    }
    std::sort(oldest_first.begin(), oldest_first.end(), [](const Demand* a, const Demand* b) {
        return std::tie(a->created_at, a->job) < std::tie(b->created_at, b->job);
    });
    for (const Demand* demand : oldest_first) {
        add_job(*demand);
    }
    add_holdings();
}

void Planner::add_job(const Demand& demand) {
    JobWants job;
    job.demand = &demand;
    std::set<std::string> nodes;
    for (const std::string& node : demand.nodes) {
        if (capacity_.contains({demand.pool, node})) {
            nodes.insert(node);
        }
    }
    job.on_a_node = !nodes.empty();
    const std::uint64_t parts = std::max<std::uint64_t>(nodes.size(), 1);
    const auto part = [&](Bytes all) {
        return all.is_unlimited() ? all : Bytes{all.count() / parts};
    };
    const std::vector<Bytes> wanted =
        wishes(demand, part(demand.max_bytes.value_or(Bytes::unlimited())));
    const std::vector<Bytes> minimum = level_fill(wanted, part(demand.min_bytes));
    for (std::size_t i = 0; i < demand.datasets.size(); ++i) {
        job.size_unknown |= demand.mode == CacheMode::kAuto && !demand.datasets[i].total;
        for (const std::string& node : nodes) {
            add_want(job, {demand.pool, node, demand.datasets[i].uid}, i, wanted[i], minimum[i]);
        }
    }
    std::sort(job.wants.begin(), job.wants.end(), [](const Want& a, const Want& b) {
        return std::tie(a.key, a.dataset) < std::tie(b.key, b.dataset);
    });
    jobs_.push_back(std::move(job));
}

// Two names of one dataset in one job are one want.
void Planner::add_want(
    JobWants& job, const ClaimKey& key, std::size_t dataset, Bytes wanted, Bytes minimum) {
    for (Want& want : job.wants) {
        if (want.key == key) {
            want.wanted = std::max(want.wanted, wanted);
            want.minimum = std::max(want.minimum, minimum);
            return;
        }
    }
    Claim& claim = claims_[key];
    claim.ns = job.demand->job.ns;
    ++claim.users;
    job.wants.push_back({key, dataset, wanted, minimum});
}

void Planner::add_holdings() {
    for (const Holding& holding : view_.holdings) {
        const auto claim = claims_.find({holding.pool, holding.node, holding.dataset_uid});
        if (claim == claims_.end()) {
            idle_[{holding.pool, holding.node}] += holding.resident;
        } else {
            claim->second.resident = std::max(claim->second.resident, holding.resident);
            claim->second.held_before = std::max(claim->second.held_before, holding.granted);
        }
    }
    for (const auto& [key, capacity] : capacity_) {
        const auto idle = idle_.find(key);
        node_free_[key] = capacity - (idle == idle_.end() ? Bytes::zero() : idle->second);
    }
    for (const auto& [key, quota] : quotas_) {
        quota_free_[key] = quota.nominal;
    }
}

StopPolicy Planner::stop_policy(const Demand& demand) const {
    const auto pool = stops_.find(demand.pool);
    const auto quota = quotas_.find({demand.job.ns, demand.pool});
    const StopPolicy first = pool == stops_.end() ? StopPolicy::kNone : pool->second;
    const StopPolicy second = quota == quotas_.end() ? StopPolicy::kNone : quota->second.stop;
    return std::max(first, second);
}

Bytes Planner::quota_left(const QuotaKey& key) const {
    const auto found = quota_free_.find(key);
    return found == quota_free_.end() ? Bytes::unlimited() : found->second;
}

// Raises the job's claims to its minimum or its wish, as far as nodes and quota allow.
void Planner::grow(JobWants& job, bool to_minimum) {
    const StopPolicy stop = stop_policy(*job.demand);
    std::vector<Bytes> needs;
    std::map<PoolNodeKey, Bytes> promised;
    for (const Want& want : job.wants) {
        const Claim& claim = claims_.at(want.key);
        Bytes target = to_minimum ? want.minimum : want.wanted;
        if (stop != StopPolicy::kNone) {
            const Bytes most = stop == StopPolicy::kHold ? claim.held_before : Bytes::zero();
            job.stopped |= target > most;
            target = std::min(target, most);
        }
        const Bytes missing = target - claim.granted;
        Bytes& taken = promised[{want.key.pool, want.key.node}];
        const Bytes free = node_free_.at({want.key.pool, want.key.node}) - taken;
        job.node_limited |= missing > free;
        needs.push_back(std::min(missing, free));
        taken += needs.back();
    }
    const QuotaKey quota{job.demand->job.ns, job.demand->pool};
    const Bytes budget = quota_left(quota);
    job.quota_limited |= sum(needs) > budget;
    const std::vector<Bytes> amounts = level_fill(needs, budget);
    for (std::size_t i = 0; i < amounts.size(); ++i) {
        const ClaimKey& key = job.wants[i].key;
        claims_.at(key).granted += amounts[i];
        node_free_.at({key.pool, key.node}) -= amounts[i];
    }
    if (const auto left = quota_free_.find(quota); left != quota_free_.end()) {
        left->second -= sum(amounts);
    }
}

// Bytes that a claim must give back are still on the node: growth beyond what is resident waits for
// room.
void Planner::shrink_before_growing() {
    std::map<PoolNodeKey, Bytes> node_room;
    std::map<QuotaKey, Bytes> quota_room;
    for (const auto& [key, capacity] : capacity_) {
        node_room[key] = capacity - idle_[key];
    }
    for (const auto& [key, quota] : quotas_) {
        quota_room[key] = quota.nominal;
    }
    for (const auto& [key, claim] : claims_) {
        node_room.at({key.pool, key.node}) -= claim.resident;
        if (const auto room = quota_room.find({claim.ns, key.pool}); room != quota_room.end()) {
            room->second -= claim.resident;
        }
    }
    std::set<ClaimKey> done;
    for (JobWants& job : jobs_) {
        for (const Want& want : job.wants) {
            Claim& claim = claims_.at(want.key);
            if (claim.granted <= claim.resident || !done.insert(want.key).second) {
                continue;
            }
            Bytes& on_node = node_room.at({want.key.pool, want.key.node});
            const auto quota = quota_room.find({claim.ns, want.key.pool});
            const Bytes growth = claim.granted - claim.resident;
            Bytes room = std::min(growth, on_node);
            job.node_limited |= room < growth;
            if (quota != quota_room.end()) {
                job.quota_limited |= quota->second < room;
                room = std::min(room, quota->second);
                quota->second -= room;
            }
            on_node -= room;
            claim.granted = claim.resident + room;
        }
    }
}

AllocationReason reason_of(const JobWants& job, Bytes wanted, Bytes granted) {
    if (!job.on_a_node) {
        return AllocationReason::kWaitingForPods;
    }
    if (job.stopped) {
        return AllocationReason::kStopped;
    }
    if (granted < wanted) {
        return job.quota_limited ? AllocationReason::kQuotaExhausted : AllocationReason::kPoolFull;
    }
    return job.size_unknown ? AllocationReason::kProfiling : AllocationReason::kGranted;
}

std::string explain(
    AllocationReason reason, const JobAllocation& job, const std::optional<QuotaView>& quota) {
    const std::string share =
        fmt::format("{} of {}", to_string(job.granted), to_string(job.wanted));
    switch (reason) {
        case AllocationReason::kGranted:
            return fmt::format("{} granted in pool {}.", to_string(job.granted), job.pool);
        case AllocationReason::kQuotaExhausted:
            return fmt::format(
                "{} granted: the jobs of namespace {} may hold {} in pool {}, and all of it is "
                "given out.",
                share,
                job.job.ns,
                to_string(quota ? quota->nominal : Bytes::zero()),
                job.pool);
        case AllocationReason::kPoolFull:
            return fmt::format(
                "{} granted: the job's nodes have no more room in pool {}.", share, job.pool);
        case AllocationReason::kStopped:
            return fmt::format(
                "{} granted: the stopPolicy of pool {} or of the namespace's CacheQuota allows no "
                "more.",
                share,
                job.pool);
        case AllocationReason::kProfiling:
            return fmt::format(
                "{} granted: the size of a dataset is not known until its origin is listed.",
                to_string(job.granted));
        case AllocationReason::kWaitingForPods:
            return fmt::format("No pod of the job is on a node of pool {}.", job.pool);
        default:
            return share + " granted.";
    }
}

JobAllocation Planner::allocation_of(const JobWants& job) const {
    JobAllocation result;
    result.job = job.demand->job;
    result.pool = job.demand->pool;
    result.datasets.resize(job.demand->datasets.size());
    for (const Want& want : job.wants) {
        // Another job may want more of a shared dataset; this one profits only up to its own wish.
        const Bytes granted = std::min(claims_.at(want.key).granted, want.wanted);
        result.wanted += want.wanted;
        result.granted += granted;
        result.datasets[want.dataset] += granted;
    }
    result.reason = reason_of(job, result.wanted, result.granted);
    const auto quota = quotas_.find({result.job.ns, result.pool});
    result.message = explain(
        result.reason,
        result,
        quota == quotas_.end() ? std::nullopt : std::optional(quota->second));
    return result;
}

QuotaCharge Planner::charge_of(const JobWants& job) const {
    QuotaCharge result{job.demand->job, job.demand->pool, Bytes::zero()};
    for (const Want& want : job.wants) {
        const Claim& claim = claims_.at(want.key);
        result.charged += Bytes{claim.granted.count() / claim.users};
    }
    return result;
}

std::vector<AgentGrant> Planner::grants() const {
    std::map<std::pair<std::string, std::string>, AgentGrant> by_node;
    for (const auto& [key, claim] : claims_) {
        AgentGrant& grant = by_node[{key.node, key.uid}];
        grant.node = key.node;
        grant.dataset_uid = key.uid;
        grant.resident_bytes = std::max(grant.resident_bytes, claim.granted);
        grant.valid_seconds = view_.valid_seconds;
    }
    // The reason of the oldest job that uses the dataset there.
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
        const std::string reason{to_string(allocation_of(*job).reason)};
        for (const Want& want : job->wants) {
            by_node.at({want.key.node, want.key.uid}).reason = reason;
        }
    }
    std::vector<AgentGrant> result;
    for (auto& entry : by_node) {
        result.push_back(std::move(entry.second));
    }
    return result;
}

AllocationPlan Planner::plan() {
    for (JobWants& job : jobs_) {
        grow(job, true);
    }
    for (JobWants& job : jobs_) {
        grow(job, false);
    }
    shrink_before_growing();
    AllocationPlan result;
    result.grants = grants();
    for (const auto& [key, claim] : claims_) {
        result.granted_in_pool[key.pool] += claim.granted;
    }
    for (const JobWants& job : jobs_) {
        result.jobs.push_back(allocation_of(job));
        result.charges.push_back(charge_of(job));
    }
    const auto by_job = [](const auto& a, const auto& b) { return a.job < b.job; };
    std::sort(result.jobs.begin(), result.jobs.end(), by_job);
    std::sort(result.charges.begin(), result.charges.end(), by_job);
    return result;
}

}  // namespace

std::string_view to_string(AllocationReason reason) {
    constexpr std::array<std::string_view, 10> kTexts{
        "Granted",
        "Borrowed",
        "ComputeBound",
        "QuotaExhausted",
        "LowerMarginalBenefit",
        "PoolFull",
        "Reclaimed",
        "Profiling",
        "WaitingForPods",
        "Stopped"};
    return kTexts[static_cast<std::size_t>(reason)];
}

AllocationPlan plan_grants(const AllocationView& view) {
    return Planner{view}.plan();
}

}  // namespace stoker::control
