#include "operator/controllers/trainingjob/kueue_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "operator/core/workload/build_workload.h"

namespace stoker::control {

namespace {

std::string say_unread(const ResourceKind& kind, const std::string& name, const Error& error) {
    return error.code == ErrorCode::kNotFound
               ? fmt::format("{} {} does not exist.", kind.kind, name)
               : fmt::format("{} {} cannot be read: {}.", kind.kind, name, error.message);
}

Result<PriorityClass> find_workload_class(const std::string& name, ApiClient& client) {
    STOKER_TRY(const Object object, client.get(kinds::kWorkloadPriorityClasses, {"", name}));
    return read_document<PriorityClass>(object.raw);
}

// The class of that name, or the lowest default if the pods name none; empty: there is no default.
Result<PriorityClass> find_pod_class(const std::string& name, ApiClient& client) {
    STOKER_TRY(const std::vector<Object> objects, client.list(kinds::kPriorityClasses, {}));
    std::vector<PriorityClass> found;
    for (const Object& object : objects) {
        STOKER_TRY(PriorityClass one, read_document<PriorityClass>(object.raw));
        if (name.empty() ? one.is_default : one.name == name) {
            found.push_back(std::move(one));
        }
    }
    const auto lowest = std::ranges::min_element(found, {}, &PriorityClass::value);
    if (lowest == found.end() && !name.empty()) {
        return fail(ErrorCode::kNotFound, "it does not exist");
    }
    return lowest == found.end() ? PriorityClass{} : *lowest;
}

void read_priority(const TrainingJob& job, ApiClient& client, KueueView& view) {
    const std::string& label = value_or_empty(job.meta.labels, std::string{kPriorityClassLabel});
    const bool is_kueues = !label.empty();
    const std::string& name = is_kueues ? label : job.spec.pod_template.priority_class_name;
    const Result<PriorityClass> found =
        is_kueues ? find_workload_class(name, client) : find_pod_class(name, client);
    if (!found) {
        view.trouble = say_unread(
            is_kueues ? kinds::kWorkloadPriorityClasses : kinds::kPriorityClasses,
            name,
            found.error());
        return;
    }
    view.priority.class_name = found->name;
    view.priority.value = found->value;
    if (!found->name.empty()) {
        view.priority.class_source =
            is_kueues ? "kueue.x-k8s.io/workloadpriorityclass" : "scheduling.k8s.io/priorityclass";
    }
}

void read_flavors(ApiClient& client, KueueView& view) {
    for (const std::string& name : view.workload->flavors) {
        const Result<Object> object = client.get(kinds::kResourceFlavors, {"", name});
        const Result<ResourceFlavor> flavor =
            object ? read_document<ResourceFlavor>(object->raw) : fail(object.error());
        if (!flavor) {
            view.trouble = say_unread(kinds::kResourceFlavors, name, flavor.error());
            return;
        }
        view.flavors.push_back(*flavor);
    }
}

}  // namespace

KueueView read_kueue(
    const TrainingJob& job, bool has_attempt, ClusterCache& cache, ApiClient& client) {
    KueueView view;
    view.installed = cache.workloads().has_synced();
    if (const auto stored = cache.workloads().store().get({job.meta.ns, workload_name(job)})) {
        view.workload = stored->value;
    }
    if (!is_queued(job) || !view.installed || has_attempt) {
        return view;
    }
    if (!view.workload) {
        read_priority(job, client, view);
    } else if (is_true(view.workload->conditions, "Admitted")) {
        read_flavors(client, view);
    }
    return view;
}

}  // namespace stoker::control
