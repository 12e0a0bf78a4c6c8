#pragma once

#include <string>
#include <vector>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/guarantee.h"
#include "operator/core/allocation/plan_allocation_limits.h"

// Private to plan_allocation.
namespace stoker::control {

// The decision about one pool, step by step; one entry for each claim of the table.
struct PoolDecision {
    ClaimBytes lower;                 // minimums and what mode Fixed asks for
    std::vector<std::uint64_t> owed;  // to each account beyond its minimums; Guarantee::owed()
    ClaimBytes guaranteed;            // the minimums, and where the owed bytes are
    ClaimBytes target;                // with all else
    ClaimBytes within;                // of the targets, what is not borrowed
    ClaimBytes granted;  // now: nobody has grown into bytes that may still be somewhere else
    std::vector<std::uint64_t> origin_limit;  // bytes/s; 0: none
    std::vector<AllocationReason> reasons;    // one a job
    std::vector<double> job_origin;           // bytes/s that each job may count on; 0: not known
};

PoolDecision decide_pool(const ClaimTable& table);

// Shrink first: what each claim is granted now on its way to the targets.
ClaimBytes grow_safely(const ClaimTable& table, const PoolDecision& decision);

// Raises `given` until the slowest job is as fast as can be, then the next slowest, for a few
// rounds; returns the new amounts. Speed is the share of f* that a job can read on its worst node.
// `guarantee`: given, what it owes can still be given.
ClaimBytes raise_the_slowest(
    const ClaimTable& table,
    const Rooms& rooms,
    const ClaimBytes& given,
    const Guarantee* guarantee);

// Shares the origin's bandwidth: max-min over the jobs, only where it does not suffice for all.
void share_bandwidth(const ClaimTable& table, PoolDecision& decision);

// Adds to the plan which bytes must go back: of claims that have more than they are granted.
void name_reclaims(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

// And which idle bytes: those that were not used for longest first, only as many as it takes.
void name_sweeps(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

// Why: adds reasons, numbers, and what the quotas add up to, to the plan and the decision.
void explain_pool(const ClaimTable& table, PoolDecision& decision, AllocationPlan& plan);

}  // namespace stoker::control
