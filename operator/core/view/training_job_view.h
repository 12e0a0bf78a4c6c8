#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/job.h"
#include "operator/api/workload.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

// Why there is no Job, why it has no pods or why one does not begin; or nothing.
struct Diagnosis {
    std::string words;        // sentences
    bool is_invalid = false;  // the API server does not understand the Job: the spec must change

    bool operator==(const Diagnosis&) const = default;
};

// What Kueue says of a job with a queue's label (operator/core/lifecycle/kueue_gate.h).
struct KueueView {
    bool installed = false;               // its Workloads have been listed
    std::optional<Workload> workload;     // of the name workload_name(job), whoever owns it
    WorkloadPriority priority;            // for a Workload that is to be made
    std::vector<ResourceFlavor> flavors;  // those of the admission that exist
    std::string trouble;                  // a sentence: why what is needed of Kueue cannot be read
};

// Everything that the fate of one TrainingJob depends on, gathered at one moment. Lists may be in
// any order.
struct TrainingJobView : JobUse {
    std::vector<Job> jobs;  // owned by it, or with the name of its next attempt whoever owns them
    std::optional<ObjectMeta> service;   // of the name service_name(job), whoever owns it
    std::vector<Node> nodes;             // at least those that the pods are on and that exist
    std::vector<SidecarReport> reports;  // with its uid
    std::vector<Holding> holdings;       // what is on the nodes
    std::optional<JobAllocation> allocation;
    std::optional<JobProfile> profile;  // none: not enough is known
    JobSettings settings;
    Diagnosis diagnosis;
    std::vector<std::string> pool_paths;  // directories of all CachePools
    // Datasets of other namespaces: what their condition FillersReady says, by uid.
    std::map<std::string, Condition> fillers{};
    KueueView kueue{};
};

// A sidecar that was silent for longer than this is not believed any more.
inline constexpr Duration kReportAgeMax = std::chrono::seconds{60};

// A node that is not ready for this long is lost: its terminating pods are not waited for.
inline constexpr Duration kLostNodeAfter = std::chrono::seconds{60};

}  // namespace stoker::control
