#pragma once

#include <string>
#include <vector>

#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/workload/build_filler.h"
#include "tests/unit/operator/core/make_training_job.h"

// Dataset data/imagenet, guests of namespace "team", and fillers of the Dataset.
namespace stoker::control {

inline Dataset make_shared_dataset() {
    Dataset dataset = make_dataset();
    dataset.meta.ns = "data";
    dataset.spec.shared_with = LabelSelector{};
    return dataset;
}

// The job of make_running_view(), two pods, as a guest of make_shared_dataset().
inline JobUse make_guest() {
    JobUse use = use_of(make_running_view());
    use.datasets.edit().datasets.at(0).ns = "data";
    return use;
}

// A filler's Job, as the API server has it.
inline Job make_filler_job(const Dataset& dataset, const FillerPlace& place) {
    ResolvedPool pool;
    pool.name = place.pool;
    const JobManifest manifest = build_filler({dataset, pool, JobSettings{}, place.node});
    Job job;
    job.meta = manifest.meta;
    job.meta.uid = "uid-" + manifest.meta.name;
    job.start_time = wall(0);
    job.active_deadline_seconds = manifest.active_deadline_seconds;
    return job;
}

inline std::string digest_of(const Job& job) {
    return value_or_empty(job.meta.annotations, std::string{kDigestAnnotation});
}

inline Pod make_filler_pod(const Job& job) {
    Pod pod;
    pod.meta.ns = job.meta.ns;
    pod.meta.name = job.meta.name + "-xyzab";
    pod.meta.labels = job.meta.labels;
    pod.meta.labels["batch.kubernetes.io/job-name"] = job.meta.name;
    pod.meta.annotations = job.meta.annotations;
    pod.node_name = place_of(job.meta).node;
    pod.phase = PodPhase::kRunning;
    pod.ready = true;
    return pod;
}

// The fillers of the Dataset in pool "nvme", with one pod on node n1.
inline JobUse make_filler_use(const Dataset& dataset) {
    JobUse use;
    ObjectMeta& meta = use.job.edit().meta;
    meta.ns = dataset.meta.ns;
    meta.name = filler_training_job(dataset, "nvme");
    meta.uid = dataset.meta.uid;
    use.datasets.edit().datasets = {resolve_for_filler(dataset)};
    use.pool.name = "nvme";
    use.pods = {make_filler_pod(make_filler_job(dataset, {"nvme", "n1"}))};
    use.filler = true;
    return use;
}

// Report of the filler's pod, as the leader.
inline SidecarReport make_filler_report(const Dataset& dataset, std::int64_t second) {
    const JobUse use = make_filler_use(dataset);
    SidecarReport report = make_report(make_running_view(), 0, second);
    report.namespace_name = dataset.meta.ns;
    report.pod = use.pods[0]->meta.name;
    report.training_job = use.job->meta.name;
    report.training_job_uid = use.job->meta.uid;
    report.datasets[0].name = use.datasets->datasets[0].name;
    return report;
}

}  // namespace stoker::control
