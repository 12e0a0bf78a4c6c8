#include "operator/core/allocation/explain_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "operator/core/allocation/claim_value.h"

namespace stoker::control {

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::uint64_t kHairs = 20;  // differences up to 1/kHairs do not change a reason

// Limits on a job's bytes, over all its claims.
struct Shortage {
    bool by_account = false;
    bool by_node = false;
    bool by_others = false;    // jobs on its nodes hold bytes that no quota guarantees
    bool by_owners = false;    // jobs on its nodes hold bytes that their quotas guarantee
    bool giving_back = false;  // its borrowed bytes return to their owner
};

class Explainer {
public:
    Explainer(const ClaimTable& table, const PoolDecision& decision)
        : table_(table),
          decision_(decision),
          rooms_(borrowing_rooms(table, decision.target)),
          job_rooms_(borrowing_rooms(table, decision.by_jobs)),
          used_(account_uses(table, decision.target)),
          reserves_(account_uses(table, reserves_of(table))),
          lent_(lent_of(table, decision.target)) {}

    void run(AllocationPlan& plan) {
        for (std::size_t i = 0; i < table_.jobs.size(); ++i) {
            plan.jobs.push_back(allocation_of(i));
            plan.charges.push_back(charge_of(i, plan.jobs.back()));
        }
        add_quotas(plan);
    }

private:
    [[nodiscard]] Shortage shortage_of(std::size_t job) const;
    [[nodiscard]] AllocationReason reason_of(std::size_t job, const JobAllocation& result) const;
    [[nodiscard]] std::string quota_words(std::size_t job, const JobAllocation& result) const;
    [[nodiscard]] std::string room_words(bool is_fill, const JobAllocation& result) const;
    [[nodiscard]] std::string message_of(std::size_t job, const JobAllocation& result) const;
    [[nodiscard]] AllocationNumbers numbers_of(std::size_t job) const;
    [[nodiscard]] JobAllocation allocation_of(std::size_t job) const;
    [[nodiscard]] QuotaCharge charge_of(std::size_t job, const JobAllocation& result) const;
    [[nodiscard]] bool is_account_full(const Claim& claim, const Rooms& rooms) const;

    // A job may take room that fills hold.
    [[nodiscard]] const Rooms& rooms_for(std::size_t job) const {
        return table_.jobs[job].is_fill() ? rooms_ : job_rooms_;
    }

    [[nodiscard]] bool is_contested(std::size_t index, std::size_t other) const;
    [[nodiscard]] bool gives_back(const Claim& claim) const;
    void add_quotas(AllocationPlan& plan) const;

    [[nodiscard]] double last_per_gib(std::size_t index) const;
    [[nodiscard]] std::size_t account_of(std::size_t index) const;
    [[nodiscard]] const HeldBack* held_back(std::size_t index) const;
    [[nodiscard]] bool lost_to_borrowers(std::size_t index) const;

    const ClaimTable& table_;
    const PoolDecision& decision_;
    Rooms rooms_;                  // free beyond the targets
    Rooms job_rooms_;              // free beyond the targets of jobs
    std::vector<Bytes> used_;      // by account, under the targets
    std::vector<Bytes> reserves_;  // by account, before any claim shrinks
    std::vector<Bytes> lent_;      // by account, under the targets
};

bool Explainer::is_account_full(const Claim& claim, const Rooms& rooms) const {
    const bool lends_for_good =
        table_.accounts[claim.account].quota.reclaim == ReclaimPolicy::kNever &&
        lent_[claim.account] > Bytes::zero();
    return lends_for_good || rooms.accounts[claim.account] == Bytes::zero() ||
           (rooms.of_account(claim.account) == Bytes::zero() &&
            rooms.nodes[claim.node] > Bytes::zero());
}

// Whether jobs' bytes of another claim on the same node exceed its minimum and its own quota's
// guarantee; for two claims of one account: beyond its minimum.
bool Explainer::is_contested(std::size_t index, std::size_t other) const {
    const bool one_account = table_.claims[index].account == table_.claims[other].account;
    const ClaimBytes& firm = one_account ? decision_.lower : decision_.guaranteed;
    return other != index && decision_.by_jobs[other] > firm[other];
}

// Whether the account loses borrowed bytes, beyond a small tolerance. A move between jobs of one
// namespace is not a reclaim.
bool Explainer::gives_back(const Claim& claim) const {
    const Bytes now = reserves_[claim.account];
    const Bytes most = std::max(table_.accounts[claim.account].quota.nominal, used_[claim.account]);
    return now > most && (now - most).count() > now.count() / kHairs;
}

Shortage Explainer::shortage_of(std::size_t job) const {
    Shortage result;
    for (const std::size_t i : table_.jobs[job].claims) {
        const Claim& claim = table_.claims[i];
        const Bytes wanted = claim.user(job).wanted;
        result.giving_back |= claim.reserve() > decision_.granted[i] && gives_back(claim);
        if (decision_.target[i] >= wanted) {
            continue;
        }
        if (is_account_full(claim, rooms_for(job))) {
            result.by_account = true;
            continue;
        }
        result.by_node = true;
        for (const std::size_t other : table_.nodes[claim.node].claims) {
            result.by_others |= is_contested(i, other);
            result.by_owners |=
                table_.claims[other].account != claim.account &&
                decision_.guaranteed[other] > Bytes::zero() &&
                used_[claim.account] >= table_.accounts[claim.account].quota.nominal;
        }
    }
    return result;
}

AllocationReason Explainer::reason_of(std::size_t index, const JobAllocation& result) const {
    const PlannedJob& job = table_.jobs[index];
    if (job.nodes.empty()) {
        return AllocationReason::kWaitingForPods;
    }
    if (job.stopped) {
        return AllocationReason::kStopped;
    }
    if (job.knowledge == JobKnowledge::kComputeBound && table_.pool.objective != Objective::kCost &&
        table_.pool.objective != Objective::kEven && job.demand->mode != CacheMode::kFixed) {
        return AllocationReason::kComputeBound;
    }
    // A small remainder that the plan is about to grant counts as granted.
    const bool is_coming =
        result.target >= result.wanted &&
        (result.wanted - result.granted).count() <= result.wanted.count() / kHairs;
    if (result.granted < result.wanted && !is_coming) {
        const Shortage shortage = shortage_of(index);
        if (held_back(index) != nullptr && result.granted < result.target) {
            return AllocationReason::kReclaimed;
        }
        if (shortage.by_account && !shortage.giving_back && lost_to_borrowers(index)) {
            return AllocationReason::kLowerMarginalBenefit;
        }
        if (shortage.giving_back && (shortage.by_account || shortage.by_owners)) {
            return AllocationReason::kReclaimed;
        }
        if (shortage.by_account) {
            return AllocationReason::kQuotaExhausted;
        }
        if (!shortage.by_node || !shortage.by_others || job.is_fill()) {
            return shortage.by_owners ? AllocationReason::kQuotaExhausted
                                      : AllocationReason::kPoolFull;
        }
        return job.knowledge == JobKnowledge::kProfiling ? AllocationReason::kProfiling
                                                         : AllocationReason::kLowerMarginalBenefit;
    }
    if (job.size_unknown) {
        return AllocationReason::kProfiling;
    }
    return result.borrowed > Bytes::zero() ? AllocationReason::kBorrowed
                                           : AllocationReason::kGranted;
}

// Account of the job's first claim limited by a quota; without one, of its first claim.
std::size_t Explainer::account_of(std::size_t index) const {
    const std::vector<std::size_t>& claims = table_.jobs[index].claims;
    const auto short_of = std::ranges::find_if(claims, [&](std::size_t i) {
        const Claim& claim = table_.claims[i];
        return decision_.target[i] < claim.user(index).wanted &&
               is_account_full(claim, rooms_for(index));
    });
    return table_.claims[short_of == claims.end() ? claims.front() : *short_of].account;
}

const HeldBack* Explainer::held_back(std::size_t index) const {
    for (const std::size_t claim : table_.jobs[index].claims) {
        const HeldBack* held = table_.accounts[table_.claims[claim].account].held_back;
        if (held != nullptr) {
            return held;
        }
    }
    return nullptr;
}

bool Explainer::lost_to_borrowers(std::size_t index) const {
    const std::size_t account = account_of(index);
    return table_.accounts[account].quota.reclaim == ReclaimPolicy::kLowerMarginalBenefit &&
           lent_[account] > Bytes::zero();
}

std::string Explainer::quota_words(std::size_t index, const JobAllocation& result) const {
    if (const HeldBack* held = held_back(index); held != nullptr) {
        return held->why;
    }
    const Account& account = table_.accounts[account_of(index)];
    const std::string& ns = account.quota.ns;
    const Bytes most = account.quota.nominal;
    const Bytes borrowed = used_[account_of(index)] - most;
    if (ns != result.job.ns) {
        return fmt::format(
            "namespace {}, the dataset's owner, may hold no more in pool {}.", ns, result.pool);
    }
    if (result.reason == AllocationReason::kReclaimed) {
        return fmt::format(
            "bytes beyond what namespace {} may hold ({} and what others leave) go back.",
            ns,
            to_string(most));
    }
    const Bytes lent = lent_[account_of(index)];
    if (account.quota.reclaim == ReclaimPolicy::kNever && lent > Bytes::zero()) {
        return fmt::format(
            "of the {} of namespace {} in pool {}, {} is lent, and policy Never of its CacheQuota "
            "leaves it to the borrowers.",
            to_string(most),
            ns,
            result.pool,
            to_string(lent));
    }
    if (account.by_default && most == Bytes::zero()) {
        return fmt::format(
            "namespace {} has no CacheQuota in pool {}, and the quotas of others leave no more.",
            ns,
            result.pool);
    }
    return fmt::format(
        "the datasets of namespace {} may hold {}{} in pool {}, and all of it is given out.",
        ns,
        to_string(most),
        borrowed == Bytes::zero() ? ""
                                  : fmt::format(" and {} that others leave", to_string(borrowed)),
        result.pool);
}

std::string Explainer::room_words(bool is_fill, const JobAllocation& result) const {
    if (result.granted >= result.target) {
        const std::string_view words = is_fill
                                           ? "jobs and other warm-ups have the rest of its nodes in"
                                           : "the job's nodes have no more room in";
        return fmt::format("{} pool {}.", words, result.pool);
    }
    if (!table_.settled) {
        return "more follows when the operator, which has just begun to lead, knows what every "
               "sidecar holds.";
    }
    return fmt::format(
        "{} more follow when others have given them back.",
        to_string(result.target - result.granted));
}

std::string Explainer::message_of(std::size_t index, const JobAllocation& result) const {
    const PlannedJob& job = table_.jobs[index];
    const std::string share =
        fmt::format("{} of {}", to_string(result.granted), to_string(result.wanted));
    const AllocationNumbers& numbers = result.numbers;
    const auto rate = [](double per_gib) {
        return to_string(Bytes{static_cast<std::uint64_t>(std::max(per_gib, 0.0))}) + "/s";
    };
    switch (result.reason) {
        case AllocationReason::kGranted:
            return fmt::format("{} granted in pool {}.", to_string(result.granted), result.pool);
        case AllocationReason::kBorrowed:
            return fmt::format(
                "{} granted in pool {}, {} of it borrowed from other namespaces.",
                to_string(result.granted),
                result.pool,
                to_string(result.borrowed));
        case AllocationReason::kComputeBound:
            return fmt::format(
                "{} granted: the job computes longer than the origin needs to deliver its data, so "
                "more cache would not make it faster.",
                to_string(result.granted));
        case AllocationReason::kQuotaExhausted:
        case AllocationReason::kReclaimed:
            return share + " granted: " + quota_words(index, result);
        case AllocationReason::kLowerMarginalBenefit:
            if (lost_to_borrowers(index)) {
                return fmt::format(
                    "{} granted: namespace {} lends {}, which saves the borrowers more than it "
                    "would save here ({} at the origin with the next GiB).",
                    share,
                    table_.accounts[account_of(index)].quota.ns,
                    to_string(lent_[account_of(index)]),
                    rate(numbers.marginal_per_gib));
            }
            return fmt::format(
                "{} granted: the next GiB would save {} at the origin here, and other jobs of its "
                "nodes save at least {} with it.",
                share,
                rate(numbers.marginal_per_gib),
                rate(numbers.threshold_per_gib));
        case AllocationReason::kPoolFull:
            return share + " granted: " + room_words(job.is_fill(), result);
        case AllocationReason::kStopped:
            return fmt::format(
                "{} granted: the stopPolicy of pool {} or of the namespace's CacheQuota allows no "
                "more.",
                share,
                result.pool);
        case AllocationReason::kProfiling:
            if (job.size_unknown) {
                return fmt::format(
                    "{} until the size of every dataset is known: the origin has to be listed "
                    "first.",
                    result.granted == Bytes::zero() ? "No bytes are given out"
                                                    : to_string(result.granted) + " granted");
            }
            return fmt::format(
                "{} granted: an even share until it is known how fast the job reads.", share);
        case AllocationReason::kWaitingForPods:
            if (table_.nodes.empty()) {
                return fmt::format("Pool {} has no node.", result.pool);
            }
            return fmt::format("No pod of the job is on a node of pool {}.", result.pool);
    }
    return share + " granted.";
}

// Value of the last byte of the claim's target for jobs, summed over its users.
double Explainer::last_per_gib(std::size_t index) const {
    double result = 0;
    for (const ClaimUser& user : table_.claims[index].users) {
        result += saved_by_next(table_, user, Bytes{decision_.by_jobs[index].count() - 1});
    }
    return result * kGib;
}

AllocationNumbers Explainer::numbers_of(std::size_t index) const {
    const PlannedJob& job = table_.jobs[index];
    AllocationNumbers result;
    const double origin = decision_.job_origin.at(index);
    for (const std::size_t i : job.claims) {
        const Claim& claim = table_.claims[i];
        const double next = saved_by_next(table_, claim.user(index), decision_.target[i]) * kGib;
        result.marginal_per_gib = std::max(result.marginal_per_gib, next);
        for (const std::size_t other : table_.nodes[claim.node].claims) {
            if (is_contested(i, other)) {
                const double last = last_per_gib(other);
                result.threshold_per_gib =
                    result.threshold_per_gib == 0 ? last : std::min(result.threshold_per_gib, last);
            }
        }
    }
    if (job.knowledge == JobKnowledge::kProfiling || job.is_fill()) {
        result.marginal_per_gib = 0;
        return result;
    }
    result.ingest_rate = job.ingest;
    result.origin_rate = origin;
    if (origin > 0) {
        result.rate = predict_rate(table_, index, decision_.target, origin);
        result.rate_without_cache = std::min(job.ingest, origin);
    }
    return result;
}

JobAllocation Explainer::allocation_of(std::size_t index) const {
    const PlannedJob& job = table_.jobs[index];
    JobAllocation result;
    result.job = job.demand->job;
    result.pool = table_.pool.pool;
    result.datasets.resize(job.demand->datasets.size());
    Bytes own{};
    for (const std::size_t i : job.claims) {
        // Another job may want more of a shared dataset; this job profits only up to its own wish.
        const ClaimUser& user = table_.claims[i].user(index);
        if (user.remote) {
            continue;
        }
        const Bytes granted = std::min(decision_.granted[i], user.wanted);
        result.wanted += user.wanted;
        result.granted += granted;
        result.target += std::min(decision_.target[i], user.wanted);
        result.datasets[user.dataset] +=
            std::max(decision_.granted[i], table_.claims[i].outstanding);
        own += std::min(decision_.within[i], user.wanted);
        result.minimum += user.minimum;
        result.guaranteed += std::min(decision_.lower[i], user.minimum);
    }
    result.borrowed = result.granted - own;
    result.numbers = numbers_of(index);
    result.reason = reason_of(index, result);
    result.message = message_of(index, result);
    return result;
}

QuotaCharge Explainer::charge_of(std::size_t index, const JobAllocation& allocation) const {
    QuotaCharge result{allocation.job, allocation.pool, Bytes::zero(), 0};
    result.marginal_per_gib = allocation.numbers.marginal_per_gib;
    for (const std::size_t i : table_.jobs[index].claims) {
        const Claim& claim = table_.claims[i];
        if (claim.user(index).remote ||
            table_.accounts[claim.account].quota.ns != allocation.job.ns) {
            continue;
        }
        const auto users = static_cast<std::uint64_t>(
            std::count_if(claim.users.begin(), claim.users.end(), [&](const ClaimUser& user) {
                return !user.remote && table_.jobs[user.job].demand->job.ns == allocation.job.ns;
            }));
        result.charged += Bytes{decision_.granted[i].count() / users};
    }
    return result;
}

void Explainer::add_quotas(AllocationPlan& plan) const {
    const std::vector<Bytes> used = account_uses(table_, decision_.granted);
    const std::vector<Bytes> lent = lent_of(table_, decision_.granted);
    for (std::size_t i = 0; i < table_.accounts.size(); ++i) {
        const QuotaView& quota = table_.accounts[i].quota;
        if (!table_.accounts[i].by_default) {
            plan.quotas.push_back(
                {quota.ns, quota.pool, used[i], used[i] - quota.nominal, lent[i]});
        }
    }
}

}  // namespace

std::string_view to_string(AllocationReason reason) {
    return kAllocationReasonTexts[static_cast<std::size_t>(reason)];
}

void explain_pool(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan) {
    Explainer{table, decision}.run(plan);
}

}  // namespace stoker::control
