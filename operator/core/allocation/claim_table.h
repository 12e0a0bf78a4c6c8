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

// One pool of an AllocationView in the planner's own terms: numbers instead of names, cleaned
// input, everything in a fixed order. Private to operator/core/allocation. Pure.
namespace stoker::control {

// What is known of a job's rates.
enum class JobKnowledge : std::uint8_t { kProfiling, kDataBound, kComputeBound };

struct PlannedJob {
    const Demand* demand = nullptr;
    JobKnowledge knowledge = JobKnowledge::kProfiling;
    double ingest = 0;  // f* over all nodes, cleaned; a guess while profiling
    double origin = 0;  // 0: not known
    double doubt = 1;   // what its bytes count in comparisons, a profile that is not sure of itself
                        // being drawn towards the typical job's; predictions know no doubt
    double weight = 1;
    std::vector<std::size_t> nodes;   // ascending
    std::vector<MissCurve> curves;    // one a dataset of the demand
    std::vector<double> shares;       // of the job's bytes that each dataset has
    std::vector<std::size_t> claims;  // ascending, each once
    bool size_unknown = false;
    bool stopped = false;

    // Share of its bytes that may come from the origin without the job waiting; 0: not known.
    [[nodiscard]] double origin_share() const;
};

// A job's part in a claim.
struct ClaimUser {
    std::size_t job = 0;
    std::size_t dataset = 0;
    Bytes wanted{};                    // what it can use there, or has and may keep
    Bytes most = Bytes::unlimited();   // that a stopPolicy leaves it
    Bytes ahead = Bytes::unlimited();  // of it, what the last epoch has not read yet
    Bytes minimum{};                   // guaranteed
    Bytes fixed{};                     // mode Fixed
    Bytes enough{};                    // with them it no longer waits for this dataset on its node
    double rate = 0;     // bytes/s that it reads of the dataset on the node at full speed
    double fetched = 1;  // share of its misses that are its own: 1/J where J jobs share a fetch
};

// One dataset on one node. Several jobs may share it; it is granted and charged once.
struct Claim {
    std::string uid;
    std::size_t node = 0;
    std::vector<ClaimUser> users;  // by job
    std::uint32_t account = 0;     // of the dataset's namespace: it pays, whoever reads
    Bytes limit{};                 // the most that any user wants
    Bytes size{};                  // of the dataset; zero: not known
    Bytes resident{};
    Bytes outstanding{};  // what the sidecar may believe to be granted
    Bytes held{};         // the last grant

    bool in_flight = false;

    // The job's part; it has one.
    [[nodiscard]] const ClaimUser& user(std::size_t job) const {
        return *std::ranges::find(users, job, &ClaimUser::job);
    }

    // The most bytes that may be on the node until it shrinks.
    [[nodiscard]] Bytes reserve() const { return std::max(resident, outstanding); }
};

struct IdleHolding {
    std::string uid;
    std::size_t node = 0;
    std::optional<std::uint32_t> account;  // none: the dataset's namespace is not known
    Bytes resident{};
    WallTime last_used{};
};

struct PlannedNode {
    std::string name;
    Bytes capacity{};
    Bytes idle{};  // taken by datasets that no job uses
    Bytes free{};  // what is left of the capacity by that and by the last grants
    std::vector<std::size_t> claims;
};

// Account of a namespace whose datasets are in the pool, or that has a quota there.
struct Account {
    QuotaView quota;
    bool by_default = false;              // the quota is the pool's DefaultQuota
    Bytes idle{};                         // of the namespace's datasets that no job uses
    const HeldBack* held_back = nullptr;  // of the view

    // Kueue's words: the most that it may be charged, and of its nominal quota, what it does not
    // lend.
    [[nodiscard]] Bytes most() const { return quota.nominal + quota.borrowing; }

    [[nodiscard]] Bytes guaranteed() const {
        return quota.nominal - std::min(quota.lending, quota.nominal);
    }
};

struct ClaimTable {
    PoolView pool;
    double hysteresis = 1;
    Bytes step{1};
    bool settled = true;
    std::vector<PlannedNode> nodes;  // by name
    std::vector<Account> accounts;   // by namespace
    std::vector<PlannedJob> jobs;    // those of higher priority, then the older ones first
    std::vector<Claim> claims;       // by node, uid
    std::vector<IdleHolding> idle;   // by node, uid
};

using ClaimBytes = std::vector<Bytes>;  // one for each claim of the table

// The tables of all pools that a node, a quota or a demand names, by pool. The view must outlive
// them.
std::map<std::string, ClaimTable> make_claim_tables(const AllocationView& view);

}  // namespace stoker::control
