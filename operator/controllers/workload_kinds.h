#pragma once

#include <optional>

#include "operator/api/meta.h"
#include "operator/api/training_job.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

// The resource of a workload's kind, of any version, if the operator may read it: Job, ReplicaSet,
// Deployment, StatefulSet, JobSet, Kubeflow's jobs, TrainJob, RayCluster, RayJob. nullopt: another
// kind.
std::optional<ResourceKind> workload_kind(const std::string& api_version, const std::string& kind);

// The reference to an owner.
WorkloadRef workload_ref_of(const OwnerReference& owner);

}  // namespace stoker::control
