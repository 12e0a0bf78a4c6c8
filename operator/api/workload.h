#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/job_manifest.h"
#include "operator/api/meta.h"

// Kueue's kinds (kueue.x-k8s.io/v1beta1), limited to the fields that the operator uses. Values.
namespace stoker::control {

// A queued job's request to Kueue, and Kueue's decision.
struct Workload {
    ObjectMeta meta;
    std::vector<Condition> conditions;  // sorted by type
    std::vector<std::string> flavors;   // names of the ResourceFlavors assigned to its pods, sorted
    bool has_checks = false;            // some AdmissionCheck applies to it
    PodPlacement check_placement;       // what its AdmissionChecks add to the pods
    // Passed through unchanged when its status is written.
    Json admission;
    Json admission_checks;
    Json requeue_state;
    Json resource_requests;
    std::optional<std::int64_t> past_execution_seconds;

    bool operator==(const Workload&) const = default;
};

struct ResourceFlavor {
    std::string name;
    TextMap node_labels;
    std::vector<Json> tolerations;

    bool operator==(const ResourceFlavor&) const = default;
};

// A WorkloadPriorityClass of Kueue, or a PriorityClass of Kubernetes.
struct PriorityClass {
    std::string name;
    std::int64_t value = 0;
    bool is_default = false;  // for pods that name none

    bool operator==(const PriorityClass&) const = default;
};

// The priority of a Workload, and its source.
struct WorkloadPriority {
    std::string class_name;    // empty: none
    std::string class_source;  // "kueue.x-k8s.io/workloadpriorityclass", ...; empty: none
    std::int64_t value = 0;

    bool operator==(const WorkloadPriority&) const = default;
};

// The Workload that the operator creates: one podSet, "main".
struct WorkloadManifest {
    ObjectMeta meta;  // name, ns, labels, annotations, owners
    std::string queue_name;
    WorkloadPriority priority;
    std::optional<std::int64_t> max_execution_seconds;
    std::int64_t pod_count = 1;
    Json pod_template;

    bool operator==(const WorkloadManifest&) const = default;
};

Json to_json(const WorkloadManifest& workload);

// Bodies of server-side applies to /status. Each uses a field manager of Kueue, because Kueue's own
// writes must be able to change or remove these fields.

// All fields of Kueue's manager kAdmissionManager, conditional on the version that was read.
Json admission_body(const Workload& workload);

// One condition, owned by manager_of_condition() of its type.
Json condition_body(const Workload& workload, const Condition& condition);

inline constexpr std::string_view kAdmissionManager = "kueue-admission";

// "kueue-job-controller-Finished".
std::string manager_of_condition(std::string_view type);

}  // namespace stoker::control
