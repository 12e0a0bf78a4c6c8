#include "operator/core/allocation/claim_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "operator/core/allocation/level_fill.h"
#include "operator/core/allocation/shared_reads.h"
#include "operator/core/allocation/user_curve.h"

namespace stoker::control {

namespace {

// bytes/s; a rate beyond these is a reporting error
constexpr double kRateMin = 1e-6;
constexpr double kRateMax = 1e15;
constexpr double kWeightMax = 1e6;
constexpr int kReleaseSteps = 8;              // steps of a release in the last epoch
constexpr std::uint64_t kStepsPerNode = 256;  // minimum, so that small nodes have curves too

std::optional<double> clean_rate(double rate) {
    return rate >= kRateMin && rate <= kRateMax ? std::optional(rate) : std::nullopt;
}

double clean_weight(double weight) {
    return std::isnan(weight) ? 1 : std::clamp(weight, 0.0, kWeightMax);
}

Bytes sum(const std::vector<Bytes>& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), Bytes::zero());
}

// Bytes wanted for each dataset on each node, from the job's budget per node.
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
    // Mode Fixed holds exactly the requested bytes: bytes that the datasets do not need are spread
    // over all of them.
    const std::vector<Bytes> everything(result.size(), Bytes::unlimited());
    const std::vector<Bytes> rest = level_fill(everything, node_budget - sum(result));
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] += rest[i];
    }
    return result;
}

// The namespace that is charged for the bytes.
const std::string& owner_of(const Demand& demand, const DemandDataset& dataset) {
    return dataset.ns.empty() ? demand.job.ns : dataset.ns;
}

MissCurve make_curve(Bytes size, const AccessPattern& access) {
    switch (access.kind) {
        case AccessKind::kImportance:
            return MissCurve::importance(size, access.beta, access.full_epochs);
        case AccessKind::kMeasured:
            return MissCurve::measured(size, access.sketch, access.replication > 0);
        case AccessKind::kReplicate:
            return MissCurve::replicate(size, access.replication, access.bias);
        default:
            return MissCurve::exact(size);
    }
}

// The bytes that the job has still to read: in its last epoch, bytes that it has read have no
// value. Falls in kReleaseSteps steps, so that the job releases bytes only a few times.
Bytes still_ahead(const Demand& demand, Bytes all) {
    const double progress = demand.last_epoch_progress.value_or(0);
    if (!(progress > 0) || all.is_unlimited()) {
        return Bytes::unlimited();
    }
    const auto done =
        static_cast<std::uint64_t>(std::floor(std::min(progress, 1.0) * kReleaseSteps));
    const std::uint64_t part = all.count() / kReleaseSteps;
    return done == kReleaseSteps ? Bytes::zero() : all - Bytes{part} * done;
}

class Builder {
public:
    Builder(const AllocationView& view, std::string pool);

    ClaimTable build();

private:
    void add_nodes();
    void add_accounts();
    void add_jobs();
    PlannedJob make_job(const Demand& demand);
    void set_rates(PlannedJob& job) const;
    void guess_rates();
    void add_claims(std::size_t job_index);
    void add_user(std::size_t node, const DemandDataset& dataset, ClaimUser user);
    [[nodiscard]] Bytes wanted_of(const Claim& claim, const ClaimUser& user) const;
    void add_holdings();
    void limit_claims();

    const AllocationView& view_;
    ClaimTable table_;
    std::map<std::string, std::size_t> node_index_;
    std::map<std::string, std::uint32_t> account_index_;
    ClaimsByPlace claims_;
};

Builder::Builder(const AllocationView& view, std::string pool)
    : view_(view) {
    for (const PoolView& candidate : view.pools) {
        if (candidate.pool == pool) {
            table_.pool = candidate;
        }
    }
    table_.pool.pool = std::move(pool);
    table_.hysteresis =
        std::isfinite(view.hysteresis) ? std::clamp(view.hysteresis, 1.0, 2.0) : 1.0;
    table_.step = std::max(view.step, Bytes{1});
    table_.settled = view.settled;
}

void Builder::add_nodes() {
    std::map<std::string, Bytes> capacities;
    for (const PoolNode& node : view_.nodes) {
        if (node.pool == table_.pool.pool) {
            capacities[node.node] = node.capacity;
        }
    }
    for (const auto& [name, capacity] : capacities) {
        node_index_[name] = table_.nodes.size();
        table_.nodes.push_back({name, capacity, Bytes::zero(), Bytes::zero(), {}});
        const Bytes part{std::max<std::uint64_t>(capacity.count() / kStepsPerNode, 1)};
        table_.step = std::min(table_.step, part);
        table_.largest = std::max(table_.largest, capacity);
    }
}

// Adds an account for each quota, and one with the pool's default quota for every other namespace
// with datasets in the pool. Sorted by namespace.
void Builder::add_accounts() {
    std::map<std::string, Account> accounts;
    const auto add_default = [&](const std::string& ns) {
        const DefaultQuota& its = table_.pool.default_quota;
        Account account{{ns, table_.pool.pool, its.nominal}, true};
        account.quota.borrowing = its.borrowing;
        account.quota.lending = its.lending;
        accounts.try_emplace(ns, account);
    };
    for (const QuotaView& quota : view_.quotas) {
        if (quota.pool == table_.pool.pool) {
            accounts[quota.ns] = {quota};
        }
    }
    for (const Demand& demand : view_.demands) {
        for (const DemandDataset& dataset : demand.datasets) {
            if (demand.pool == table_.pool.pool) {
                add_default(owner_of(demand, dataset));
            }
        }
    }
    for (const Holding& holding : view_.holdings) {
        if (holding.pool == table_.pool.pool && !holding.ns.empty()) {
            add_default(holding.ns);
        }
    }
    for (auto& [ns, account] : accounts) {
        account_index_[ns] = static_cast<std::uint32_t>(table_.accounts.size());
        account.quota.weight = clean_weight(account.quota.weight);
        table_.accounts.push_back(account);
    }
    for (const HeldBack& held : view_.held_back) {
        const auto account = account_index_.find(held.ns);
        if (held.pool == table_.pool.pool && account != account_index_.end()) {
            table_.accounts[account->second].held_back = &held;
        }
    }
}

void Builder::set_rates(PlannedJob& job) const {
    const Demand& demand = *job.demand;
    if (demand.fill) {
        job.knowledge = JobKnowledge::kFill;
    } else if (const auto ingest = demand.rates ? clean_rate(demand.rates->ingest) : std::nullopt) {
        job.ingest = *ingest;
        job.origin = clean_rate(demand.rates->origin).value_or(0);
        job.knowledge =
            demand.rates->compute_bound ? JobKnowledge::kComputeBound : JobKnowledge::kDataBound;
    }
}

PlannedJob Builder::make_job(const Demand& demand) {
    PlannedJob job;
    job.demand = &demand;
    job.weight = clean_weight(demand.weight);
    set_rates(job);
    std::set<std::size_t> nodes;
    for (const std::string& node : demand.nodes) {
        if (const auto found = node_index_.find(node); found != node_index_.end()) {
            nodes.insert(found->second);
        }
    }
    job.nodes.assign(nodes.begin(), nodes.end());
    double all = 0;
    for (const DemandDataset& dataset : demand.datasets) {
        job.curves.push_back(make_curve(dataset.total.value_or(Bytes::zero()), dataset.access));
        job.shares.push_back(
            static_cast<double>(job.curves.back().dataset().count()) *
            job.curves.back().epoch_volume());
        all += job.shares.back();
        job.size_unknown |= demand.mode == CacheMode::kAuto && !dataset.total;
    }
    std::ranges::for_each(job.shares, [&](double& share) { share = all > 0 ? share / all : 0; });
    return job;
}

void Builder::add_jobs() {
    for (const Demand& demand : view_.demands) {
        if (demand.pool == table_.pool.pool) {
            table_.jobs.push_back(make_job(demand));
        }
    }
    std::sort(table_.jobs.begin(), table_.jobs.end(), [](const auto& a, const auto& b) {
        return std::tie(b.demand->priority, a.demand->created_at, a.demand->job) <
               std::tie(a.demand->priority, b.demand->created_at, b.demand->job);
    });
    guess_rates();
    for (std::size_t i = 0; i < table_.jobs.size(); ++i) {
        add_claims(i);
    }
}

// A job without a profile gets a typical job's rates; an uncertain profile gets rates in between.
void Builder::guess_rates() {
    std::vector<double> known;
    for (const PlannedJob& job : table_.jobs) {
        if (job.knowledge == JobKnowledge::kDataBound) {
            known.push_back(job.ingest);
        }
    }
    std::ranges::sort(known);
    const double typical = known.empty() ? 1 : known[known.size() / 2];
    for (PlannedJob& job : table_.jobs) {
        if (job.knowledge == JobKnowledge::kProfiling) {
            job.ingest = typical;
        } else if (!job.is_fill()) {
            const double told = job.demand->rates->confidence;
            const double sure = std::isnan(told) ? 1 : std::clamp(told, 0.0, 1.0);
            job.doubt = known.empty() ? 1 : sure + (1 - sure) * typical / job.ingest;
        }
    }
}

// The bytes that the job needs to read without waiting, or, if more, the bytes that the last plan
// lets it keep: these have some value while no other job needs them. A compute-bound job never
// waits. With peers the job wants the samples that the node owns, and copies of other owners'
// samples only if those owners lack space for them.
Bytes Builder::wanted_of(const Claim& claim, const ClaimUser& user) const {
    const PlannedJob& job = table_.jobs[user.job];
    if (job.demand->mode == CacheMode::kFixed) {
        return user.wanted;
    }
    const Bytes part = UserCurve{job, user}.part();
    const Bytes kept = std::min(claim.planned, std::max(claim.held, claim.resident));
    if (job.is_fill()) {
        const bool ended =
            std::ranges::count(job.demand->filled, table_.nodes[claim.node].name) > 0;
        const Bytes useful = ended ? claim.resident : part + user.uneven;
        return std::min(user.wanted, std::max(useful, kept));
    }
    const Bytes useful = user.lacking > 0 ? user.wanted : part + user.uneven;
    const Bytes held = claim.has_fill ? Bytes::zero() : kept;  // with a fill: perhaps its bytes
    if (table_.pool.objective == Objective::kEven) {
        return std::min(user.wanted, std::max(useful, user.minimum));
    }
    if (table_.pool.objective == Objective::kCost) {
        return std::min(user.wanted, std::max({useful, user.minimum, held}));
    }
    if (job.knowledge == JobKnowledge::kComputeBound) {
        return std::min(user.wanted, user.minimum);
    }
    const Bytes enough = user.enough < part ? user.enough : useful;
    return std::min(user.wanted, std::max({enough, user.minimum, held}));
}

void Builder::add_claims(std::size_t job_index) {
    PlannedJob& job = table_.jobs[job_index];
    const Demand& demand = *job.demand;
    const std::uint64_t parts = std::max<std::uint64_t>(job.nodes.size(), 1);
    const auto part = [&](Bytes all) {
        return all.is_unlimited() ? all : Bytes{all.count() / parts};
    };
    const std::vector<Bytes> wished =
        wishes(demand, part(demand.max_bytes.value_or(Bytes::unlimited())));
    const std::vector<Bytes> minimum = level_fill(wished, part(demand.min_bytes));
    for (std::size_t i = 0; i < demand.datasets.size(); ++i) {
        ClaimUser user;
        user.job = job_index;
        user.dataset = i;
        user.minimum = minimum[i];
        user.wanted = wished[i];
        user.ahead = still_ahead(demand, demand.datasets[i].total.value_or(wished[i]));
        user.fixed = demand.mode == CacheMode::kFixed ? user.wanted : Bytes::zero();
        user.rate = job.ingest * job.shares[i] / static_cast<double>(parts);
        for (const std::size_t node : job.nodes) {
            add_user(node, demand.datasets[i], user);
        }
    }
}

// Two names for one dataset in the same job count as one use.
void Builder::add_user(std::size_t node, const DemandDataset& dataset, ClaimUser user) {
    Claim& claim = claims_[{node, dataset.uid}];
    claim.account = account_index_.at(owner_of(*table_.jobs[user.job].demand, dataset));
    claim.size = std::max(claim.size, dataset.total.value_or(Bytes::zero()));
    claim.has_fill |= table_.jobs[user.job].is_fill();
    if (!claim.users.empty() && claim.users.back().job == user.job) {
        ClaimUser& same = claim.users.back();
        same.wanted = std::max(same.wanted, user.wanted);
        same.minimum = std::max(same.minimum, user.minimum);
        same.ahead = std::max(same.ahead, user.ahead);
        same.fixed = std::max(same.fixed, user.fixed);
        same.rate += user.rate;
        return;
    }
    claim.users.push_back(user);
}

void Builder::add_holdings() {
    std::map<std::pair<std::size_t, std::string>, IdleHolding> idle;
    for (const Holding& holding : view_.holdings) {
        const auto node = node_index_.find(holding.node);
        if (holding.pool != table_.pool.pool || node == node_index_.end()) {
            continue;
        }
        const auto claim = claims_.find({node->second, holding.dataset_uid});
        if (claim != claims_.end()) {
            claim->second.add(holding);
            continue;
        }
        // Outstanding grants count even if no job uses the dataset: a filler's sidecar may outlast
        // the readers, and a suspended job's pods end later.
        const Bytes reserve = std::max(holding.resident, holding.outstanding);
        table_.nodes[node->second].idle += reserve;
        IdleHolding& it = idle[{node->second, holding.dataset_uid}];
        it = {
            holding.dataset_uid,
            node->second,
            std::nullopt,
            it.resident + holding.resident,
            std::max(it.last_used, holding.last_used)};
        if (const auto owner = account_index_.find(holding.ns); owner != account_index_.end()) {
            it.account = owner->second;
            table_.accounts[owner->second].idle += reserve;
        }
    }
    for (auto& entry : idle) {
        table_.idle.push_back(std::move(entry.second));
    }
}

// The stopPolicy of the CachePool or CacheQuota limits a claim to its last grant (Hold) or to zero.
void Builder::limit_claims() {
    for (auto& entry : claims_) {
        Claim& claim = entry.second;
        std::tie(claim.node, claim.uid) = entry.first;
        const StopPolicy stop =
            std::max(table_.pool.stop, table_.accounts[claim.account].quota.stop);
        for (ClaimUser& user : claim.users) {
            PlannedJob& job = table_.jobs[user.job];
            user.enough = UserCurve{job, user}.bytes_for(job.origin_share() / user.fetched);
            user.wanted = wanted_of(claim, user);
            if (stop != StopPolicy::kNone) {
                const Bytes most = stop == StopPolicy::kHold ? claim.held : Bytes::zero();
                job.stopped |= user.wanted > most;
                user.most = most;
                user.minimum = std::min(user.minimum, most);
                user.fixed = std::min(user.fixed, most);
            }
            Bytes& limit = job.is_fill() ? claim.fill : claim.limit;
            limit = std::max(limit, std::min(user.wanted, user.most));
        }
    }
}

ClaimTable Builder::build() {
    add_nodes();
    add_accounts();
    add_jobs();
    add_holdings();
    pool_peers(view_, table_, claims_);
    share_fetches(table_, claims_);
    limit_claims();
    const auto is_job = [&](const ClaimUser& user) { return !table_.jobs[user.job].is_fill(); };
    for (auto& entry : claims_) {
        Claim& claim = entry.second;
        const std::size_t index = table_.claims.size();
        table_.nodes[claim.node].claims.push_back(index);
        for (const ClaimUser& user : claim.users) {
            table_.jobs[user.job].claims.push_back(index);
        }
        table_.nodes[claim.node].read_claims += std::ranges::any_of(claim.users, is_job) ? 1 : 0;
        table_.claims.push_back(std::move(claim));
    }
    for (PlannedNode& node : table_.nodes) {
        node.free = node.capacity - node.idle;
        for (const std::size_t index : node.claims) {
            node.free -= table_.claims[index].planned_for_jobs();
        }
    }
    return std::move(table_);
}

}  // namespace

double PlannedJob::origin_share() const {
    return knowledge == JobKnowledge::kProfiling || ingest <= 0 ? 0
                                                                : std::min(1.0, origin / ingest);
}

std::map<std::string, ClaimTable> make_claim_tables(const AllocationView& view) {
    std::set<std::string> pools;
    for (const PoolNode& node : view.nodes) {
        pools.insert(node.pool);
    }
    for (const QuotaView& quota : view.quotas) {
        pools.insert(quota.pool);
    }
    for (const Demand& demand : view.demands) {
        pools.insert(demand.pool);
    }
    std::map<std::string, ClaimTable> result;
    for (const std::string& pool : pools) {
        result.emplace(pool, Builder{view, pool}.build());
    }
    return result;
}

}  // namespace stoker::control
