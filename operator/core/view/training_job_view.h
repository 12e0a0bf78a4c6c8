#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/foreign_pod.h"
#include "operator/api/job.h"
#include "operator/api/workload.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/forecast.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

// Why the Job is missing, why it has no pods, or why a pod does not start; empty: none of these.
struct Diagnosis {
    std::string words;        // sentences
    bool is_invalid = false;  // the API server does not understand the Job: the spec must change

    bool operator==(const Diagnosis&) const = default;
};

// Kueue's objects for a job with a queue label (operator/core/lifecycle/kueue_gate.h).
struct KueueView {
    bool installed = false;               // Kueue's Workloads have been listed
    std::optional<Workload> workload;     // named workload_name(job), of any owner
    WorkloadPriority priority;            // for a new Workload
    std::vector<ResourceFlavor> flavors;  // existing flavors of the admission
    std::string trouble;                  // a sentence: why a required Kueue object cannot be read
};

// The workload of a TrainingJob with a workloadRef, as the API server has it.
struct WorkloadView {
    std::optional<std::int64_t> pod_count;  // nullopt: unknown
    std::optional<WorkloadEnd> end;         // nullopt: the workload goes on, or cannot be read
};

// All input for one TrainingJob's plan at one moment. Lists may be in any order.
struct TrainingJobView {
    TrainingJob job;
    ResolvedDatasets datasets;  // those that the job's spec names
    ResolvedPool pool;          // the one that the spec names
    std::vector<Pod> pods;      // those with the job's kJobLabel
    std::vector<Job> jobs;      // owned by it, or named like its next attempt, with any owner
    std::optional<ObjectMeta> service;   // named service_name(job), of any owner
    std::vector<Node> nodes;             // at least all existing nodes with the job's pods
    std::vector<SidecarReport> reports;  // those with the job's uid
    std::vector<Holding> holdings;       // bytes on the nodes
    std::optional<JobAllocation> allocation;
    std::optional<JobProfile> profile;  // none: not enough windows yet
    JobSettings settings;
    Diagnosis diagnosis;
    std::vector<std::string> pool_paths;  // directories of all CachePools
    // Condition FillersReady of Datasets of other namespaces, by uid.
    std::map<std::string, Condition> fillers{};
    KueueView kueue{};
    WorkloadView workload{};
    std::map<std::string, PeerGroup> peers{};   // of its datasets, by uid, as sent to the sidecars
    std::map<std::string, Placing> placings{};  // of its datasets' samples, by uid
};

// An older report is ignored.
inline constexpr Duration kReportAgeMax = std::chrono::seconds{60};

// A node that is not ready for this long is lost: its terminating pods are not waited for.
inline constexpr Duration kLostNodeAfter = std::chrono::seconds{60};

}  // namespace stoker::control
