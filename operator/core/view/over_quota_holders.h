#pragma once

#include <string>
#include <vector>

#include "operator/api/meta.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/view/cluster_view.h"

// Finds pods that hold lent bytes which must return to the lending namespaces. Pure.
namespace stoker::control {

// The pod and job that hold the bytes of one Reclaim.
struct OverQuotaHolder {
    Reclaim reclaim;
    ObjectKey pod;        // the leader's pod; of several, the first by name
    ObjectKey job;        // the pod's TrainingJob
    std::string dataset;  // as the job calls it

    bool operator==(const OverQuotaHolder&) const = default;
};

// One holder for each reclaim on a node with a pod of the dataset. Other reclaims have no sidecar
// that could act.
std::vector<OverQuotaHolder> find_over_quota_holders(
    const ClusterView& cluster, const std::vector<Reclaim>& reclaims);

// For example "3Gi of dataset train go back on node n1, within 30 s: 2Gi stay."
std::string say_reclaimed(const OverQuotaHolder& holder);

// A sentence about a pod that has not returned bytes in time.
std::string say_late(const OverQuotaHolder& holder);

// Namespaces charged for overdue bytes: they get no more bytes.
std::vector<HeldBack> hold_back(const std::vector<OverQuotaHolder>& late);

}  // namespace stoker::control
