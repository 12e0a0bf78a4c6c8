#include "operator/api/workload.h"

#include <algorithm>
#include <array>
#include <set>

#include "operator/api/json_reader.h"
#include "operator/api/json_writer.h"

namespace stoker::control {

namespace {

constexpr std::string_view kApiVersion = "kueue.x-k8s.io/v1beta1";
constexpr std::string_view kKind = "Workload";
constexpr std::string_view kPodSet = "main";

// workload.go, admissionManagedConditions.
constexpr std::array<std::string_view, 6> kAdmissionConditions{
    "QuotaReserved", "Evicted", "Admitted", "Preempted", "Requeued", "DeactivationTarget"};

void read_pod_set_update(const JsonReader& update, PodPlacement& placement) {
    if (update.text("name") != kPodSet) {
        return;
    }
    placement.labels.merge(update.text_map("labels"));
    placement.annotations.merge(update.text_map("annotations"));
    placement.node_selector.merge(update.text_map("nodeSelector"));
    for (RawJson& toleration : update.raw_items("tolerations")) {
        placement.tolerations.push_back(std::move(toleration));
    }
}

Workload read_workload(const JsonReader& root) {
    Workload result;
    result.meta = read_meta(root);
    const JsonReader status = root.object("status");
    result.conditions = read_conditions(status);
    std::set<std::string> flavors;
    status.object("admission").each("podSetAssignments", [&](const JsonReader& assignment) {
        for (const auto& [resource, flavor] : assignment.text_map("flavors")) {
            flavors.insert(flavor);
        }
    });
    result.flavors.assign(flavors.begin(), flavors.end());
    status.each("admissionChecks", [&](const JsonReader& check) {
        result.has_checks = true;
        check.each("podSetUpdates", [&](const JsonReader& update) {
            read_pod_set_update(update, result.check_placement);
        });
    });
    result.admission = status.raw("admission");
    result.admission_checks = status.raw("admissionChecks");
    result.requeue_state = status.raw("requeueState");
    result.resource_requests = status.raw("resourceRequests");
    // Kueue's own spelling.
    result.past_execution_seconds = status.maybe_integer("accumulatedPastExexcutionTimeSeconds");
    return result;
}

ResourceFlavor read_resource_flavor(const JsonReader& root) {
    const JsonReader spec = root.object("spec");
    return {read_meta(root).name, spec.text_map("nodeLabels"), spec.raw_items("tolerations")};
}

PriorityClass read_priority_class(const JsonReader& root) {
    return {read_meta(root).name, root.integer("value"), root.flag("globalDefault")};
}

}  // namespace

Result<Workload> parse_workload(std::string_view json) {
    return read_document(json, read_workload);
}

Result<ResourceFlavor> parse_resource_flavor(std::string_view json) {
    return read_document(json, read_resource_flavor);
}

Result<PriorityClass> parse_priority_class(std::string_view json) {
    return read_document(json, read_priority_class);
}

std::string to_json(const WorkloadManifest& workload) {
    JsonWriter pod_set;
    pod_set.text("name", std::string{kPodSet})
        .number("count", workload.pod_count)
        .raw("template", workload.pod_template);
    JsonWriter spec;
    spec.append("podSets", pod_set)
        .text("queueName", workload.queue_name)
        .number("priority", workload.priority.value)
        .text("priorityClassName", workload.priority.class_name)
        .text("priorityClassSource", workload.priority.class_source);
    if (workload.max_execution_seconds) {
        spec.number("maximumExecutionTimeSeconds", *workload.max_execution_seconds);
    }
    JsonWriter writer;
    writer.text("apiVersion", std::string{kApiVersion})
        .text("kind", std::string{kKind})
        .object("metadata", write_meta(workload.meta))
        .object("spec", spec);
    return writer.serialize();
}

std::string admission_body(const Workload& workload) {
    JsonWriter status;
    for (const Condition& condition : workload.conditions) {
        if (std::ranges::find(kAdmissionConditions, condition.type) != kAdmissionConditions.end()) {
            status.append("conditions", write_condition(condition));
        }
    }
    status.raw("admission", workload.admission)
        .raw("admissionChecks", workload.admission_checks)
        .raw("requeueState", workload.requeue_state)
        .raw("resourceRequests", workload.resource_requests);
    if (workload.past_execution_seconds) {
        status.number("accumulatedPastExexcutionTimeSeconds", *workload.past_execution_seconds);
    }
    return status_body(kKind, workload.meta, status, kApiVersion, workload.meta.resource_version);
}

std::string condition_body(const Workload& workload, const Condition& condition) {
    JsonWriter status;
    status.append("conditions", write_condition(condition));
    return status_body(kKind, workload.meta, status, kApiVersion);
}

std::string manager_of_condition(std::string_view type) {
    return "kueue-job-controller-" + std::string{type};
}

}  // namespace stoker::control
