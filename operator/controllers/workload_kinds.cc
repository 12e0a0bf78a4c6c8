#include "operator/controllers/workload_kinds.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::control {

namespace {

struct Kind {
    std::string_view group;
    std::string_view kind;
    std::string_view plural;
};

// The chart grants `get` on exactly these (charts/stoker/templates/rbac.yaml).
constexpr std::array<Kind, 14> kKinds = {{
    {"batch", "Job", "jobs"},
    {"apps", "ReplicaSet", "replicasets"},
    {"apps", "Deployment", "deployments"},
    {"apps", "StatefulSet", "statefulsets"},
    {"jobset.x-k8s.io", "JobSet", "jobsets"},
    {"trainer.kubeflow.org", "TrainJob", "trainjobs"},
    {"kubeflow.org", "PyTorchJob", "pytorchjobs"},
    {"kubeflow.org", "TFJob", "tfjobs"},
    {"kubeflow.org", "MPIJob", "mpijobs"},
    {"kubeflow.org", "XGBoostJob", "xgboostjobs"},
    {"kubeflow.org", "PaddleJob", "paddlejobs"},
    {"kubeflow.org", "JAXJob", "jaxjobs"},
    {"ray.io", "RayCluster", "rayclusters"},
    {"ray.io", "RayJob", "rayjobs"},
}};

}  // namespace

std::optional<ResourceKind> workload_kind(const std::string& api_version, const std::string& kind) {
    const std::size_t slash = api_version.find('/');
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    const std::string group = api_version.substr(0, slash);
    const auto found = std::ranges::find_if(
        kKinds, [&](const Kind& it) { return it.group == group && it.kind == kind; });
    if (found == kKinds.end()) {
        return std::nullopt;
    }
    return ResourceKind{
        group, api_version.substr(slash + 1), std::string{found->plural}, kind, true};
}

WorkloadRef workload_ref_of(const OwnerReference& owner) {
    return {owner.api_version, owner.kind, owner.name, owner.uid};
}

}  // namespace stoker::control
