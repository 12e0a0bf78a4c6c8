#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
    double fair_weight = 1;           // of its namespace, for borrowed bytes
    std::vector<std::size_t> nodes;   // ascending
    std::vector<MissCurve> curves;    // one a dataset of the demand
    std::vector<double> shares;       // of the job's bytes that each dataset has
    std::vector<std::size_t> claims;  // ascending, each once
    bool size_unknown = false;
    bool stopped = false;
    const HeldBack* held_back = nullptr;  // its namespace is, of the view

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
    double rate = 0;     // bytes/s that it reads of the dataset on the node at full speed
    double fetched = 1;  // share of its misses that are its own: 1/J where J jobs share a fetch
};

// The namespaces that bytes are charged to, evenly.
struct Payers {
    std::vector<std::string> names;       // ascending; none: nobody, or not known
    std::vector<std::uint32_t> accounts;  // of those that have a quota, ascending

    void add(const std::vector<std::string>& more);  // names

    // What each of them pays of so many bytes.
    [[nodiscard]] Bytes part_of(Bytes bytes) const;
};

// One dataset on one node. Several jobs may share it; it is granted and charged once.
struct Claim {
    std::string uid;
    std::size_t node = 0;
    std::vector<ClaimUser> users;  // by job
    // Of those that read it, whom targets are charged to:
    std::vector<std::uint32_t> accounts;  // the quotas, ascending
    std::uint64_t parts = 1;              // namespaces that share the charge
    // Whom what is there is charged to: of before, and with settle_payers() from now on.
    Payers payers{};
    bool handed_over = true;  // to those that read it: only then it may grow
    bool payers_known = true;
    Bytes limit{};  // the most that any user wants
    Bytes size{};   // of the dataset; zero: not known
    Bytes resident{};
    Bytes outstanding{};  // what the sidecar may believe to be granted
    Bytes held{};         // the last grant

    bool in_flight = false;

    // What may be on the node at any moment until it shrinks.
    [[nodiscard]] Bytes reserve() const { return std::max(resident, outstanding); }
};

struct IdleHolding {
    std::string uid;
    std::size_t node = 0;
    std::string ns;
    Bytes resident{};
    WallTime last_used{};
    Payers payers{};  // as of a claim; handed over to its own namespace
    bool handed_over = true;
};

struct PlannedNode {
    std::string name;
    Bytes capacity{};
    Bytes idle{};  // taken by datasets that no job uses
    Bytes free{};  // what is left of the capacity by that and by the last grants
    std::vector<std::size_t> claims;
};

struct Account {
    QuotaView quota;
    Bytes idle{};  // of the namespace's datasets that no job uses

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

// The tables of all pools that a node, a quota or a demand names, by pool. The view must outlive
// them.
std::map<std::string, ClaimTable> make_claim_tables(const AllocationView& view);

// Hands over what is there to those that read it (idle bytes: to the dataset's namespace) as far as
// they can pay for it, all at once or else one after the other; for the rest, who paid before goes
// on. So who leaves a dataset pays for its part until it has shrunk to what the others can pay for,
// and who joins does not pay what it cannot. Changes no more than who is charged: no account is
// over its limit by it that was not.
//
// Where it is not known who paid before, and the readers cannot, somebody may pay who is gone: in a
// pool with such bytes nobody grows until they have shrunk, or somebody's grace is over.
void settle_payers(ClaimTable& table);

// The bytes with which the user would no longer wait for this dataset on its node.
Bytes enough_for(const ClaimTable& table, const ClaimUser& user);

// What the claim would get if its node were divided evenly: more is hardly worth anything to a job
// that nothing is known of.
Bytes even_share(const ClaimTable& table, const Claim& claim);

// What one more byte of the claim saves at the origin, as a never rising sequence of pieces up to
// its limit: bytes/s per byte, or money/s per byte with Objective::kCost, weighted. `fair`: with
// the weights of the namespaces too. `sticky`: bytes of the last grant count a little more, so that
// nothing moves for less.
struct ClaimPiece {
    Bytes end{};  // from the claim's zero
    double value = 0;
};

struct PieceOptions {
    bool fair = false;
    bool sticky = true;
    // Of a smooth curve. A straight one has as many parts, each worth a hair less than the one
    // before it, so that equals rise together instead of one after the other.
    std::size_t chord_count = 16;
};

std::vector<ClaimPiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options);

}  // namespace stoker::control
