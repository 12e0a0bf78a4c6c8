#include "operator/api/workload.h"

#include <algorithm>
#include <array>
#include <set>

#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

constexpr std::string_view kApiVersion = "kueue.x-k8s.io/v1beta1";
constexpr std::string_view kKind = "Workload";
constexpr std::string_view kPodSet = "main";

// From Kueue's workload.go, admissionManagedConditions.
constexpr std::array<std::string_view, 6> kAdmissionConditions{
    "QuotaReserved", "Evicted", "Admitted", "Preempted", "Requeued", "DeactivationTarget"};

void read_pod_set_update(const JsonReader& update, PodPlacement& placement) {
    if (update.text("name") != kPodSet) {
        return;
    }
    placement.labels.merge(update.text_map("labels"));
    placement.annotations.merge(update.text_map("annotations"));
    placement.node_selector.merge(update.text_map("nodeSelector"));
    for (Json& toleration : update.raw_items("tolerations")) {
        placement.tolerations.push_back(std::move(toleration));
    }
}

void read_answers(const JsonReader& root, Workload& workload) {
    const JsonReader status = root.object("status");
    std::set<std::string> flavors;
    status.object("admission").each("podSetAssignments", [&](const JsonReader& assignment) {
        for (const auto& [resource, flavor] : assignment.text_map("flavors")) {
            flavors.insert(flavor);
        }
    });
    workload.flavors.assign(flavors.begin(), flavors.end());
    status.each("admissionChecks", [&](const JsonReader& check) {
        workload.has_checks = true;
        check.each("podSetUpdates", [&](const JsonReader& update) {
            read_pod_set_update(update, workload.check_placement);
        });
    });
}

}  // namespace

template <>
inline constexpr auto kFields<Workload> = std::tuple{
    field("metadata", &Workload::meta),
    field("status.conditions", &Workload::conditions),
    field("status.admission", &Workload::admission),
    field("status.admissionChecks", &Workload::admission_checks),
    field("status.requeueState", &Workload::requeue_state),
    field("status.resourceRequests", &Workload::resource_requests),
    // Kueue's own spelling (sic).
    field("status.accumulatedPastExexcutionTimeSeconds", &Workload::past_execution_seconds)};
template <>
inline constexpr auto kAlsoRead<Workload> = &read_answers;

template <>
inline constexpr auto kFields<ResourceFlavor> = table(
    field("metadata.name", &ResourceFlavor::name),
    field("spec.nodeLabels", &ResourceFlavor::node_labels),
    field("spec.tolerations", &ResourceFlavor::tolerations));

template <>
inline constexpr auto kFields<PriorityClass> = table(
    field("metadata.name", &PriorityClass::name),
    field("value", &PriorityClass::value),
    field("globalDefault", &PriorityClass::is_default));

template Result<Workload> read_document<Workload>(const Json& json);
template Result<ResourceFlavor> read_document<ResourceFlavor>(const Json& json);
template Result<PriorityClass> read_document<PriorityClass>(const Json& json);

Json to_json(const WorkloadManifest& workload) {
    const Json pod_set = json_object(
        {{"name", kPodSet},
         {"count", workload.pod_count},
         {"template", workload.pod_template, Presence::kUnlessNull}});
    const Json spec = json_object(
        {{"podSets", std::vector{pod_set}},
         {"queueName", workload.queue_name},
         {"priority", workload.priority.value},
         {"priorityClassName", workload.priority.class_name},
         {"priorityClassSource", workload.priority.class_source},
         {"maximumExecutionTimeSeconds", workload.max_execution_seconds}});
    return json_object(
        {{"apiVersion", kApiVersion},
         {"kind", kKind},
         {"metadata", FieldWriter::write_fields(workload.meta)},
         {"spec", spec}});
}

Json admission_body(const Workload& workload) {
    std::vector<Json> conditions;
    for (const Condition& condition : workload.conditions) {
        if (std::ranges::find(kAdmissionConditions, condition.type) != kAdmissionConditions.end()) {
            conditions.push_back(FieldWriter::write_fields(condition));
        }
    }
    const Json status = json_object(
        {{"conditions", conditions},
         {"admission", workload.admission, Presence::kUnlessNull},
         {"admissionChecks", workload.admission_checks, Presence::kUnlessNull},
         {"requeueState", workload.requeue_state, Presence::kUnlessNull},
         {"resourceRequests", workload.resource_requests, Presence::kUnlessNull},
         {"accumulatedPastExexcutionTimeSeconds", workload.past_execution_seconds}});
    return status_body(kKind, workload.meta, status, kApiVersion, workload.meta.resource_version);
}

Json condition_body(const Workload& workload, const Condition& condition) {
    const Json status =
        json_object({{"conditions", std::vector{FieldWriter::write_fields(condition)}}});
    return status_body(kKind, workload.meta, status, kApiVersion);
}

std::string manager_of_condition(std::string_view type) {
    return "kueue-job-controller-" + std::string{type};
}

}  // namespace stoker::control
