#pragma once

#include <string>
#include <vector>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/plan_allocation_limits.h"

// Private to plan_allocation.
namespace stoker::control {

// The decision about one pool, step by step; one entry for each claim of the table.
struct PoolDecision {
    ClaimBytes lower;    // minimums and what mode Fixed asks for
    ClaimBytes within;   // within the nominal quotas
    ClaimBytes target;   // with borrowed bytes
    ClaimBytes granted;  // now: nobody has grown into bytes that may still be somewhere else
    std::vector<std::uint64_t> origin_limit;  // bytes/s; 0: none
    std::vector<AllocationReason> reasons;    // one a job
    std::vector<double> job_origin;           // bytes/s that each job may count on; 0: not known
};

PoolDecision decide_pool(const ClaimTable& table);

// Shrink first: what each claim is granted now on its way to the targets.
ClaimBytes grow_safely(const ClaimTable& table, const PoolDecision& decision);

// Grants stay as they are where a plan changes them by no more than rounding moves. Bytes of a
// dataset that several namespaces pay for are charged in whole parts, so where a quota binds to the
// last byte two plans of one worth would take turns for ever. Growth that nobody gives way for goes
// on, so it ends; and what a promise or a limit asks for is done to the byte.
void rest_where_only_rounding_moves(const ClaimTable& table, PoolDecision& decision);

// Shares the origin's bandwidth: max-min over the jobs, only where it does not suffice for all.
void share_bandwidth(const ClaimTable& table, PoolDecision& decision);

// Adds to the plan which bytes must go back: of claims that have more than they are granted.
void name_reclaims(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

// And which idle bytes: those that were not used for longest first, only as many as it takes.
void name_sweeps(const ClaimTable& table, const PoolDecision& decision, AllocationPlan& plan);

// Why: adds reasons, numbers, and what the quotas add up to, to the plan and the decision.
void explain_pool(const ClaimTable& table, PoolDecision& decision, AllocationPlan& plan);

}  // namespace stoker::control
