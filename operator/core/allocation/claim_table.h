#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/allocation/allocation_view.h"
#include "operator/core/allocation/miss_curve.h"

// One pool of an AllocationView as the planner uses it: indices instead of names, validated input,
// sorted lists. Private to operator/core/allocation. Pure.
namespace stoker::control {

// The profile's verdict about a job. kFill: no job reads (Demand::fill).
enum class JobKnowledge : std::uint8_t { kProfiling, kDataBound, kComputeBound, kFill };

struct PlannedJob {
    const Demand* demand = nullptr;
    JobKnowledge knowledge = JobKnowledge::kProfiling;
    double ingest = 0;  // f* over all nodes, validated; estimated while profiling
    double origin = 0;  // 0: unknown
    // Factor on the value of the job's bytes: pulls an uncertain profile towards the typical job's.
    // predict_rate() ignores it.
    double doubt = 1;
    double weight = 1;
    std::vector<std::size_t> nodes;   // ascending
    std::vector<MissCurve> curves;    // one per dataset of the demand
    std::vector<double> shares;       // share of the job's bytes, by dataset
    std::vector<std::size_t> claims;  // ascending, no duplicates; also claims it uses remotely
    bool size_unknown = false;
    bool stopped = false;

    [[nodiscard]] bool is_fill() const { return knowledge == JobKnowledge::kFill; }

    // Share of the job's bytes that may come from the origin without delaying it; 0: unknown.
    [[nodiscard]] double origin_share() const;
};

// One job's use of a claim. With peers: its use of the samples that the claim's node owns.
struct ClaimUser {
    std::size_t job = 0;
    std::size_t dataset = 0;
    Bytes wanted{};                    // bytes that it can use there, or already has
    Bytes most = Bytes::unlimited();   // limit from a stopPolicy
    Bytes ahead = Bytes::unlimited();  // bytes not yet read in the last epoch
    Bytes minimum{};                   // guaranteed
    Bytes fixed{};                     // mode Fixed
    Bytes enough{};                    // bytes at which it stops waiting for the dataset there
    double rate = 0;     // bytes/s of the dataset that it reads on the node at full speed
    double fetched = 1;  // share of its misses that it fetches, if windowed jobs share fetches
    // Nodes that share the dataset's samples evenly (see UserCurve); 1: no peers.
    std::uint64_t owners = 1;
    bool remote = false;  // the job has no pod on the node: its own nodes fetch from this one
    // With peers: bytes/s that the job's pods on the node read, whichever node owns the sample, and
    // the fraction (0..1) of the other owners' bytes that does not fit on those nodes.
    double own_rate = 0;
    double lacking = 0;
    Bytes uneven{};  // bytes by which the hash may give the node more than an even part
};

// One dataset on one node. Several jobs may share it; it is granted and charged once.
struct Claim {
    std::string uid;
    std::size_t node = 0;
    std::vector<ClaimUser> users;  // by job
    std::uint32_t account = 0;     // of the dataset's namespace, which pays for all readers
    Bytes limit{};                 // largest `wanted` of a job
    Bytes fill{};                  // `wanted` of a fill
    Bytes size{};                  // of the dataset; zero: unknown
    Bytes resident{};
    Bytes outstanding{};  // largest grant that the sidecar may still use
    Bytes held{};         // the last grant
    Bytes planned{};      // the last plan's target, from which hysteresis counts

    bool in_flight = false;
    bool has_fill = false;
    bool uncounted = false;  // Holding::uncounted

    // The first job with a pod on the node.
    [[nodiscard]] const ClaimUser& first_user() const {
        return *std::ranges::find(users, false, &ClaimUser::remote);
    }

    // The job's use of the claim. Precondition: it exists.
    [[nodiscard]] const ClaimUser& user(std::size_t job) const {
        return *std::ranges::lower_bound(users, job, {}, &ClaimUser::job);
    }

    // Part of `planned` that is for jobs: fills have to return the rest.
    [[nodiscard]] Bytes planned_for_jobs() const {
        return has_fill ? std::min(planned, limit) : planned;
    }

    // The most bytes that the jobs or the fill want.
    [[nodiscard]] Bytes most() const { return std::max(limit, fill); }

    // Bytes to reserve on the node: the larger of the resident bytes and the outstanding grant.
    [[nodiscard]] Bytes reserve() const { return std::max(resident, outstanding); }

    // Adds the bytes that the dataset holds, and its planned bytes, on the node.
    void add(const Holding& holding) {
        resident = std::max(resident, holding.resident);
        held = std::max(held, holding.granted);
        planned = std::max(planned, holding.target.value_or(holding.granted));
        in_flight |= holding.in_flight;
        uncounted |= holding.uncounted;
        outstanding =
            std::max({outstanding, holding.outstanding, in_flight ? held : Bytes::zero()});
    }
};

struct IdleHolding {
    std::string uid;
    std::size_t node = 0;
    std::optional<std::uint32_t> account;  // none: the dataset's namespace is unknown
    Bytes resident{};
    WallTime last_used{};
};

struct PlannedNode {
    std::string name;
    Bytes capacity{};
    Bytes idle{};  // bytes of datasets that no job uses; at least their outstanding grants
    Bytes free{};  // capacity minus idle bytes and the last plan's targets of jobs
    std::vector<std::size_t> claims;
    std::size_t read_claims = 0;  // number of `claims` that a job reads
};

// Account of a namespace that has datasets or a quota in the pool.
struct Account {
    QuotaView quota;
    bool by_default = false;              // uses the pool's DefaultQuota
    Bytes idle{};                         // of its datasets; as PlannedNode::idle
    const HeldBack* held_back = nullptr;  // points into the view

    // Kueue's terms. most(): upper limit of the charge. guaranteed(): bytes of the nominal quota
    // that the account does not lend.
    [[nodiscard]] Bytes most() const { return quota.nominal + quota.borrowing; }

    [[nodiscard]] Bytes guaranteed() const {
        return quota.nominal - std::min(quota.lending, quota.nominal);
    }
};

struct ClaimTable {
    PoolView pool;
    double hysteresis = 1;
    Bytes step{1};
    Bytes largest{1};  // capacity of the largest node, at least 1
    bool settled = true;
    std::vector<PlannedNode> nodes;  // by name
    std::vector<Account> accounts;   // by namespace
    std::vector<PlannedJob> jobs;    // by priority (highest first), then by age (oldest first)
    std::vector<Claim> claims;       // by node, uid
    std::vector<IdleHolding> idle;   // by node, uid
};

using ClaimBytes = std::vector<Bytes>;  // one entry per claim of the table

// Tables of all pools that a node, a quota or a demand names, by pool. The view must outlive them.
std::map<std::string, ClaimTable> make_claim_tables(const AllocationView& view);

}  // namespace stoker::control
