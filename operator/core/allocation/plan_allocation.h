#pragma once

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// Divides the whole cluster's cache among datasets and nodes in one pure decision.
namespace stoker::control {

// Plans each pool separately, in this order:
//  1. Guaranteed minimums (higher priority first, then older jobs), then bytes of mode Fixed;
//     within the namespaces' nominal quotas.
//  2. The rest of the nodes within the nominal quotas, by the pool's objective: each byte goes
//     where it saves most, by the sum of f* (-dm/dc) over the jobs that share it, until a job no
//     longer waits. f*: bytes/s of the job if data were never late; m(c): miss_curve.h.
//  3. The same with lent bytes: up to borrowingLimit, from unused lendingLimits of other
//     namespaces, with the namespaces' weights. Borrowers take no bytes of steps 1 and 2, so a
//     namespace that needs its lent bytes gets back those that are worth least.
// A dataset gets equal bytes on all its nodes where possible. Shrinking comes first: no claim grows
// into bytes that may still be on a node or charged to a quota. So a node never holds more than its
// capacity, and a namespace never more than nominal + borrowed.
//
// The order of the inputs does not matter. Planned bytes (Holding::target) move only for a gain of factor
// view.hysteresis, and plans that are carried out end in a fixpoint (last_plan.h). Never fails: invalid input counts as
// unknown (allocation_view.h).
//
// Sources: Quiver (FAST 2020) and SiloD (EuroSys 2023) for benefit per byte, iCACHE (HPCA 2023) for
// the curves of importance sampling, Kueue for the quotas.
AllocationPlan plan_allocation(const AllocationView& view);

}  // namespace stoker::control
