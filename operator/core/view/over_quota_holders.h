#pragma once

#include <string>
#include <vector>

#include "operator/api/meta.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"
#include "operator/core/view/cluster_view.h"

// Bytes that go back, in terms of objects: whose they are, and who has them. Pure.
namespace stoker::control {

struct OverQuotaHolder {
    Reclaim reclaim;
    ObjectKey pod;        // whose sidecar leads there; of several the first by name
    ObjectKey job;        // the pod's TrainingJob
    std::string dataset;  // as the job calls it

    bool operator==(const OverQuotaHolder&) const = default;
};

// Reclaims without any pod are left out: nobody is there to act.
std::vector<OverQuotaHolder> find_over_quota_holders(
    const ClusterView& cluster, const std::vector<Reclaim>& reclaims);

// "3Gi of dataset train go back on node n1, within 30 s: 2Gi stay."
std::string say_reclaimed(const OverQuotaHolder& holder);

// Which pod does not give back what it must: of one whose grace is over.
std::string say_late(const OverQuotaHolder& holder);

// The namespaces that pay for the bytes get nothing more.
std::vector<HeldBack> hold_back(const std::vector<OverQuotaHolder>& late);

}  // namespace stoker::control
