#pragma once

#include <string>
#include <vector>

#include "operator/api/meta.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/view/cluster_view.h"

// Pods that hold bytes which must go back to the quotas' owners. Pure.
namespace stoker::control {

// The pod and job that hold the bytes of one Reclaim.
struct OverQuotaHolder {
    Reclaim reclaim;
    ObjectKey pod;        // whose sidecar leads there; of several the first by name
    ObjectKey job;        // the pod's TrainingJob
    std::string dataset;  // as the job calls it

    bool operator==(const OverQuotaHolder&) const = default;
};

// One holder for each reclaim. A reclaim on a node without a pod of the dataset has none: no sidecar
// is there to act.
std::vector<OverQuotaHolder> find_over_quota_holders(
    const ClusterView& cluster, const std::vector<Reclaim>& reclaims);

// "3Gi of dataset train go back on node n1, within 30 s: 2Gi stay."
std::string say_reclaimed(const OverQuotaHolder& holder);

// The sentence about a pod that has not given bytes back in time.
std::string say_late(const OverQuotaHolder& holder);

// The namespaces that are charged for late bytes: they get no more bytes.
std::vector<HeldBack> hold_back(const std::vector<OverQuotaHolder>& late);

}  // namespace stoker::control
