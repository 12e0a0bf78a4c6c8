#pragma once

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

// Divides the whole cluster's cache among datasets and nodes in one pure decision.
namespace stoker::control {

// Every pool by itself, in this order:
//  1. Guaranteed minimums (of those of higher priority, then the older ones, first), then what
//     mode Fixed asks for; within the namespaces' nominal quotas.
//  2. What is left of the nodes within the nominal quotas, by the pool's objective: to the byte
//     that saves most, f* (-dm/dc) of all jobs that share it, until a job no longer waits.
//  3. The same with bytes that namespaces lend: up to borrowingLimit out of the others' unused
//     lendingLimit, and with the weights of the namespaces. Nobody loses bytes of 1. and 2. to a
//     borrower, and so an owner that returns gets its bytes back from the least useful ones.
// A dataset has the same on each of its nodes where that is possible. Then shrink first: nobody
// grows into bytes that may still be on a node, or still be charged to a quota, so that at no
// moment a node holds more than its capacity, or a namespace more than nominal + borrowed.
//
// The order of the inputs does not matter, a plan that was carried out is a fixpoint, and bytes
// that are granted stay where they are unless others are worth view.hysteresis times as much. Never
// fails: input that makes no sense counts as not known (allocation_view.h).
//
// Sources: Quiver (FAST 2020) and SiloD (EuroSys 2023) for benefit per byte, iCACHE (HPCA 2023) for
// the curves of importance sampling, Kueue for the quotas.
AllocationPlan plan_allocation(const AllocationView& view);

}  // namespace stoker::control
