#pragma once

#include <optional>
#include <vector>

#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/allocation/what_if.h"

// Why a job has the bytes that it has, in numbers: from the planner itself, decided again over the
// same view. Pure.
namespace stoker::control {

// A job that wants bytes of the same nodes, and what they are worth to it: bytes/s at the origin
// that one GiB of it saves, with the jobs that share its datasets.
struct Contender {
    ObjectKey job;
    Bytes granted{};
    Bytes wanted{};
    double last_per_gib = 0;  // the least useful GiB that it is to have; 0: it has none
    double next_per_gib = 0;  // the next one; 0: it wants no more
    double rank = 0;          // what orders the contenders: the next one's worth, weighted, or the
                              // last one's where it wants no more

    bool operator==(const Contender&) const = default;
};

// How fast the job would run with so many bytes over all its nodes, and what the origin gives it
// now.
struct CurvePoint {
    Bytes cached{};
    double rate = 0;  // bytes/s

    bool operator==(const CurvePoint&) const = default;
};

// Something that would give the job another grant.
struct Remedy {
    Change change;
    JobAllocation after;  // when everything has come to rest
};

struct JobExplanation {
    JobAllocation allocation;
    std::size_t node_count = 0;          // of the pool, that it runs on
    Bytes dataset_bytes{};               // over all its nodes: where its curve ends
    std::vector<CurvePoint> curve;       // ascending; empty: its rates are not known
    std::vector<Contender> contenders;   // by falling rank, the job itself among them
    std::optional<JobAllocation> rests;  // where the job ends up if nothing changes
    std::vector<Remedy> remedies;        // that change something
};

// Nothing when no demand of the view is the job's. Costs up to a few dozen plans.
std::optional<JobExplanation> explain_job(const AllocationView& view, const ObjectKey& job);

}  // namespace stoker::control
