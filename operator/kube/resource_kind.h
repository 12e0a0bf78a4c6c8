#pragma once

#include <string>

namespace stoker::control {

// One resource type of the API, as in the server's URLs and objects.
struct ResourceKind {
    std::string group;    // "" is the core group
    std::string version;  // "v1"
    std::string plural;   // "jobs", as in the path
    std::string kind;     // "Job", as in the object
    bool namespaced = true;

    bool operator==(const ResourceKind&) const = default;

    // "batch/v1", or "v1" for the core group.
    [[nodiscard]] std::string api_version() const {
        return group.empty() ? version : group + "/" + version;
    }
};

// The kinds that the operator reads or writes.
namespace kinds {

inline const ResourceKind kPods{"", "v1", "pods", "Pod", true};
inline const ResourceKind kServices{"", "v1", "services", "Service", true};
inline const ResourceKind kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const ResourceKind kSecrets{"", "v1", "secrets", "Secret", true};
inline const ResourceKind kNodes{"", "v1", "nodes", "Node", false};
inline const ResourceKind kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const ResourceKind kJobs{"batch", "v1", "jobs", "Job", true};
inline const ResourceKind kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline const ResourceKind kEvents{"events.k8s.io", "v1", "events", "Event", true};
inline const ResourceKind kTokenReviews{
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
inline const ResourceKind kSubjectAccessReviews{
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false};
inline const ResourceKind kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};

inline const ResourceKind kMutatingWebhooks{
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    false};

inline const ResourceKind kTrainingJobs{
    "stoker.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};
inline const ResourceKind kDatasets{"stoker.dev", "v1alpha1", "datasets", "Dataset", true};
inline const ResourceKind kCachePools{"stoker.dev", "v1alpha1", "cachepools", "CachePool", false};
inline const ResourceKind kCacheQuotas{"stoker.dev", "v1alpha1", "cachequotas", "CacheQuota", true};
inline const ResourceKind kDatasetWarmups{
    "stoker.dev", "v1alpha1", "datasetwarmups", "DatasetWarmup", true};

// Kueue's kinds, which may be absent.
inline const ResourceKind kWorkloads{"kueue.x-k8s.io", "v1beta1", "workloads", "Workload", true};
inline const ResourceKind kResourceFlavors{
    "kueue.x-k8s.io", "v1beta1", "resourceflavors", "ResourceFlavor", false};
inline const ResourceKind kWorkloadPriorityClasses{
    "kueue.x-k8s.io", "v1beta1", "workloadpriorityclasses", "WorkloadPriorityClass", false};
inline const ResourceKind kPriorityClasses{
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};

}  // namespace kinds

}  // namespace stoker::control
