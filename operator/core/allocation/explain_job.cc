#include "operator/core/allocation/explain_job.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "operator/core/allocation/claim_value.h"
#include "operator/core/allocation/decide_pool.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/user_curve.h"

namespace stoker::control {

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::size_t kCurvePoints = 64;

const JobAllocation* find_job(const AllocationPlan& plan, const ObjectKey& job) {
    const auto found = std::ranges::find(plan.jobs, job, &JobAllocation::job);
    return found == plan.jobs.end() ? nullptr : &*found;
}

// Explains one job of one pool from a fresh decision about the pool.
class Explainer {
public:
    Explainer(const ClaimTable& table, std::size_t job)
        : table_(table),
          decision_(decide_pool(table)),
          job_(job) {}

    void explain(JobExplanation& result) const {
        const PlannedJob& job = table_.jobs[job_];
        result.node_count = job.nodes.size();
        for (const std::size_t claim : job.claims) {
            result.dataset_bytes += part_of(claim);
        }
        result.curve = curve(result.dataset_bytes);
        for (const std::size_t other : neighbours()) {
            result.contenders.push_back(contender(other));
        }
        std::ranges::stable_sort(result.contenders, [](const Contender& a, const Contender& b) {
            return a.rank > b.rank;
        });
    }

private:
    // Bytes of the claim's dataset that the job's pods on that node need there; zero if the job has
    // no pod there and only asks the node as a peer.
    [[nodiscard]] Bytes part_of(std::size_t claim) const {
        const ClaimUser& user = table_.claims[claim].user(job_);
        const Bytes size = table_.claims[claim].size;
        const Bytes part =
            user.owners > 1 ? std::min(size, UserCurve{table_.jobs[job_], user}.part()) : size;
        return user.remote ? Bytes::zero() : part;
    }

    // Jobs with a claim on one of the job's nodes, including the job itself.
    [[nodiscard]] std::set<std::size_t> neighbours() const {
        std::set<std::size_t> result{job_};
        for (const std::size_t node : table_.jobs[job_].nodes) {
            for (const std::size_t claim : table_.nodes[node].claims) {
                for (const ClaimUser& user : table_.claims[claim].users) {
                    result.insert(user.job);
                }
            }
        }
        return result;
    }

    // Value of the byte after `cached`, summed over all users of the claim.
    [[nodiscard]] double worth(const Claim& claim, Bytes cached, bool weighted) const {
        double result = 0;
        for (const ClaimUser& user : claim.users) {
            const PlannedJob& owner = table_.jobs[user.job];
            if (owner.knowledge != JobKnowledge::kProfiling && cached < user.wanted) {
                result += (weighted ? owner.weight : 1) * saved_by_next(table_, user, cached);
            }
        }
        return result * kGib;
    }

    [[nodiscard]] Contender contender(std::size_t index) const {
        const PlannedJob& job = table_.jobs[index];
        Contender result;
        result.job = job.demand->job;
        double last = std::numeric_limits<double>::infinity();
        double weighted_last = last;
        double weighted_next = 0;
        for (const std::size_t i : job.claims) {
            const Claim& claim = table_.claims[i];
            const ClaimUser& user = claim.user(index);
            if (user.remote) {
                continue;
            }
            const Bytes target = std::min(decision_.target[i], user.wanted);
            result.granted += std::min(decision_.granted[i], user.wanted);
            result.wanted += user.wanted;
            if (target > Bytes::zero()) {
                const Bytes before{target.count() - 1};
                last = std::min(last, worth(claim, before, false));
                weighted_last = std::min(weighted_last, worth(claim, before, true));
            }
            if (target < user.wanted) {
                result.next_per_gib = std::max(result.next_per_gib, worth(claim, target, false));
                weighted_next = std::max(weighted_next, worth(claim, target, true));
            }
        }
        const bool has_some = last < std::numeric_limits<double>::infinity();
        result.last_per_gib = has_some ? last : 0;
        result.rank = weighted_next > 0 || !has_some ? weighted_next : weighted_last;
        return result;
    }

    [[nodiscard]] CurvePoint predict(Bytes cached, const ClaimBytes& amounts) const {
        double read = 0;
        double fetched = 0;
        for (const std::size_t i : table_.jobs[job_].claims) {
            const ClaimUser& user = table_.claims[i].user(job_);
            read += user.rate;
            fetched += user.rate * fetched_with(table_, user, amounts[i]);
        }
        return {
            cached,
            predict_rate(table_, job_, amounts, decision_.job_origin[job_]),
            read > 0 ? fetched / read : 0};
    }

    // Points of the rate from 0 to `all` cached bytes, one at the target. Up to the target each
    // claim has the same fraction of its target; beyond it, its target and the same fraction of the
    // rest.
    [[nodiscard]] std::vector<CurvePoint> curve(Bytes all) const {
        const PlannedJob& job = table_.jobs[job_];
        std::vector<CurvePoint> result;
        if (job.knowledge == JobKnowledge::kProfiling || decision_.job_origin[job_] <= 0 ||
            all == Bytes::zero()) {
            return result;
        }
        Bytes target{};
        for (const std::size_t i : job.claims) {
            target += std::min(decision_.target[i], part_of(i));
        }
        const double middle = static_cast<double>(target.count());
        const double end = static_cast<double>(all.count());
        std::vector<double> places{middle};
        for (std::size_t point = 0; point <= kCurvePoints; ++point) {
            places.push_back(end * static_cast<double>(point) / static_cast<double>(kCurvePoints));
        }
        std::ranges::sort(places);
        ClaimBytes amounts = decision_.target;
        for (const double cached : places) {
            for (const std::size_t i : job.claims) {
                if (table_.claims[i].user(job_).remote) {
                    continue;
                }
                const double size = static_cast<double>(part_of(i).count());
                const double own = std::min(static_cast<double>(decision_.target[i].count()), size);
                const double bytes = cached <= middle
                                         ? own * (middle > 0 ? cached / middle : 0)
                                         : own + (size - own) * (cached - middle) / (end - middle);
                amounts[i] = Bytes{static_cast<std::uint64_t>(bytes)};
            }
            result.push_back(predict(Bytes{static_cast<std::uint64_t>(cached)}, amounts));
        }
        return result;
    }

    const ClaimTable& table_;
    PoolDecision decision_;
    std::size_t job_;
};

// Whether the namespace owns one of the job's datasets.
bool pays_for(const AllocationView& view, const ObjectKey& job, const std::string& ns) {
    const auto demand = std::ranges::find(view.demands, job, &Demand::job);
    return std::ranges::any_of(demand->datasets, [&](const DemandDataset& dataset) {
        return (dataset.ns.empty() ? job.ns : dataset.ns) == ns;
    });
}

// Changes that might help a job that is short of bytes; the planner decides which of them do.
std::vector<Change> candidates(const AllocationView& view, const JobExplanation& explanation) {
    const JobAllocation& job = explanation.allocation;
    const Bytes missing = job.wanted - job.target;
    std::vector<Change> result;
    if (missing == Bytes::zero()) {
        return result;
    }
    for (const QuotaView& quota : view.quotas) {
        if (quota.pool == job.pool && pays_for(view, job.job, quota.ns)) {
            result.emplace_back(SetNominal{quota.ns, quota.pool, quota.nominal + missing});
        }
    }
    const auto nodes =
        static_cast<std::uint64_t>(std::ranges::count(view.nodes, job.pool, &PoolNode::pool));
    const std::uint64_t own = std::max<std::uint64_t>(explanation.node_count, 1);
    result.emplace_back(AddCapacity{job.pool, Bytes{missing.count() / own} * nodes});
    // One change for each of the two jobs with the largest grants: that job is removed.
    std::vector<Contender> others = explanation.contenders;
    std::erase_if(others, [&](const Contender& other) {
        return other.job == job.job || other.granted == Bytes::zero();
    });
    std::ranges::sort(others, std::ranges::greater{}, &Contender::granted);
    for (std::size_t i = 0; i < std::min<std::size_t>(others.size(), 2); ++i) {
        result.emplace_back(RemoveJob{others[i].job});
    }
    return result;
}

void add_remedies(const AllocationView& view, JobExplanation& explanation) {
    const ObjectKey& key = explanation.allocation.job;
    const Outcome now = settle(view);
    if (const JobAllocation* rests = find_job(now.plan, key)) {
        explanation.rests = *rests;
    }
    for (Change& change : candidates(view, explanation)) {
        AllocationView changed = now.view;
        if (!apply_change(change, changed)) {
            continue;
        }
        const Outcome outcome = settle(std::move(changed));
        const JobAllocation* after = find_job(outcome.plan, key);
        if (after != nullptr && explanation.rests && after->granted > explanation.rests->granted) {
            explanation.remedies.push_back({std::move(change), *after});
        }
    }
}

}  // namespace

std::optional<JobExplanation> explain_job(const AllocationView& view, const ObjectKey& job) {
    const AllocationPlan plan = plan_allocation(view);
    const JobAllocation* allocation = find_job(plan, job);
    if (allocation == nullptr) {
        return std::nullopt;
    }
    JobExplanation result;
    result.allocation = *allocation;
    const std::map<std::string, ClaimTable> tables = make_claim_tables(view);
    const ClaimTable& table = tables.at(allocation->pool);
    const auto planned = std::ranges::find_if(
        table.jobs, [&](const PlannedJob& candidate) { return candidate.demand->job == job; });
    Explainer{table, static_cast<std::size_t>(planned - table.jobs.begin())}.explain(result);
    add_remedies(view, result);
    return result;
}

}  // namespace stoker::control
