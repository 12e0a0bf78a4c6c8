#pragma once

#include <optional>
#include <vector>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/allocation/what_if.h"

// Explains a job's allocation in numbers, which the planner computes again from the same view.
// Pure.
namespace stoker::control {

// A job that competes for bytes on the same nodes, and their value to it: origin bytes/s saved per
// GiB, for all jobs that share its datasets.
struct Contender {
    ObjectKey job;
    Bytes granted{};
    Bytes wanted{};
    double last_per_gib = 0;  // least useful GiB of its target; 0: it has none
    double next_per_gib = 0;  // next GiB; 0: it wants no more
    double rank = 0;          // sort key: next_per_gib, weighted; last_per_gib if it wants no more

    bool operator==(const Contender&) const = default;
};

// The job's predicted rate with this many bytes over all its nodes, at the present origin rate.
struct CurvePoint {
    Bytes cached{};
    double rate = 0;     // bytes/s
    double fetched = 0;  // share of the bytes it reads that come from the origin

    bool operator==(const CurvePoint&) const = default;
};

// A change that would give the job another grant.
struct Remedy {
    Change change;
    JobAllocation after;  // after all moves are finished
};

struct JobExplanation {
    JobAllocation allocation;
    std::size_t node_count = 0;          // nodes of the pool that it runs on
    Bytes dataset_bytes{};               // over all its nodes; the end of its curve
    std::vector<CurvePoint> curve;       // ascending; empty: its rates are unknown
    std::vector<Contender> contenders;   // by falling rank, including the job itself
    std::optional<JobAllocation> rests;  // the job's final allocation if nothing changes
    std::vector<Remedy> remedies;        // changes that alter its grant
};

// nullopt if no demand of the view belongs to the job. Costs up to a few dozen plans.
std::optional<JobExplanation> explain_job(const AllocationView& view, const ObjectKey& job);

}  // namespace stoker::control
