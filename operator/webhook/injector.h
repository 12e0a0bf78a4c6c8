#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "operator/controllers/cluster_cache.h"
#include "operator/core/workload/foreign_job.h"
#include "operator/kube/event.h"
#include "operator/webhook/admission_review.h"
#include "operator/webhook/owner_finder.h"

namespace stoker::control {

// The webhook's answer for a pod.
struct Injection {
    std::string outcome = "unchanged";  // or "cached", "refused"; for metrics

    Json patch{std::vector<Json>{}};
    std::vector<std::string> warnings;  // for the caller of the create, such as kubectl
    std::vector<EventNote> events;      // none for a dry run
};

// Decides about one pod: gathers what it names, and lets operator/core/workload/foreign_job.h write
// the patch. A pod that cannot have a cache is let through with the reason in an annotation, a
// warning, and an Event on its controller and its workload. Thread-safe.
class Injector {
public:
    struct Parts {
        ClusterCache& cache;
        OwnerFinder& owners;
        std::function<JobSettings()> settings;  // thread-safe
        std::string own_namespace;              // pods in it, and in kube-*, are left alone
        std::function<bool()> has_listed;       // whether the cluster has been listed
    };

    explicit Injector(Parts parts);

    // Blocks while the pod's owners are read. kUnavailable: this replica has not listed the cluster
    // yet.
    Result<Injection> inject(const AdmissionRequest& request);

private:
    struct Case {
        const AdmissionRequest& request;
        ForeignPod pod;
        const OwnerReference& controller;
        ForeignWorkload workload;
    };

    Injection inject_into(const Case& found);
    Injection patch(const Case& found, const Json& spec, const TrainingJob& job);
    Result<TrainingJob> job_of(
        const Case& found, const Json& spec, const FindDataset& find_dataset);

    Parts parts_;
};

}  // namespace stoker::control
