#pragma once

#include <chrono>
#include <string>

#include "operator/core/lifecycle/lifecycle.h"
#include "operator/core/workload/build_workload.h"
#include "tests/unit/operator/core/make_training_job.h"

// Simulates how Kueue v0.10.0 and the API server change a Workload, as the operator sees it.
namespace stoker::control {

inline TrainingJobView make_queued_view() {
    TrainingJob job = make_training_job();
    job.meta.labels[std::string{kQueueLabel}] = "vision";
    TrainingJobView view = make_view(std::move(job));
    view.kueue.installed = true;
    return view;
}

inline Workload as_made(const WorkloadManifest& manifest) {
    Workload workload;
    workload.meta = manifest.meta;
    workload.meta.uid = "uid-" + manifest.meta.name;
    workload.meta.generation = 1;
    return workload;
}

inline void say(
    Workload& workload,
    const std::string& type,
    bool holds,
    const std::string& reason,
    const std::string& message,
    std::int64_t second) {
    set_condition(
        workload.conditions,
        {type,
         holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
         1,
         wall(second),
         reason,
         message});
}

inline void admit(KueueView& kueue, std::int64_t second) {
    Workload& workload = *kueue.workload;
    if (find_condition(workload.conditions, "Evicted") != nullptr) {
        say(workload, "Evicted", false, "QuotaReserved", "Previously: evicted", second);
    }
    say(workload, "QuotaReserved", true, "QuotaReserved", "Quota reserved", second);
    say(workload, "Admitted", true, "Admitted", "The workload is admitted", second);
    workload.admission = Json::parse(R"({"clusterQueue":"gpus"})").value();
    workload.flavors = {"a100"};
    kueue.flavors = {{"a100", {{"gpu", "a100"}}, {Json::parse(R"({"key":"gpu"})").value()}}};
}

inline void evict(KueueView& kueue, const std::string& reason, std::int64_t second) {
    say(*kueue.workload, "Evicted", true, reason, "Preempted to accommodate another.", second);
}

// A view during attempt `attempt` of a queued job: all ranks run.
inline TrainingJobView make_admitted_view(std::int64_t attempt = 1) {
    TrainingJobView view = make_running_view(attempt);
    view.job.meta.labels[std::string{kQueueLabel}] = "vision";
    const JobInput input{
        view.job, view.datasets.datasets, view.pool, view.settings, attempt, {}, {}};
    view.kueue.installed = true;
    view.kueue.workload = as_made(build_workload(input, {}));
    admit(view.kueue, 0);
    say(*view.kueue.workload, "PodsReady", true, "PodsReady", "All pods were ready", 0);
    return view;
}

}  // namespace stoker::control
