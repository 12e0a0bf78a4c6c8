#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "operator/core/lifecycle/attempts.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/training_job_view.h"

// Builders of views for tests: a valid job with one dataset in one pool. Each test sets only the
// fields it needs.
namespace stoker::control {

inline WallTime wall(std::int64_t second) {
    return WallTime{std::chrono::seconds{second}};
}

// Sets the steady clock and the wall clock to the same second.
inline Moment moment(std::int64_t second) {
    return {TimePoint{std::chrono::seconds{second}}, wall(second)};
}

inline TrainingJob make_training_job(const std::string& name = "resnet") {
    TrainingJob job;
    job.meta.ns = "team";
    job.meta.name = name;
    job.meta.uid = "uid-" + name;
    job.meta.generation = 3;
    job.spec.trainer.image = "train:1";
    job.spec.trainer.node_count = 2;
    JobDataset dataset;
    dataset.name = "train";
    dataset.dataset_ref = "imagenet";
    job.spec.datasets = {dataset};
    return job;
}

inline Dataset make_dataset(const std::string& name = "imagenet") {
    Dataset dataset;
    dataset.meta.ns = "team";
    dataset.meta.name = name;
    dataset.meta.uid = "uid-" + name;
    dataset.meta.generation = 1;
    DatasetSource source;
    source.storage_uri = "s3://" + name;
    dataset.spec.sources = {source};
    return dataset;
}

inline CachePool make_pool(const std::string& name = "nvme") {
    CachePool pool;
    pool.meta.name = name;
    pool.meta.uid = "uid-" + name;
    pool.spec.host_path = "/mnt/" + name;
    pool.spec.capacity_per_node = gib(100);
    return pool;
}

inline CacheQuota make_quota(const std::string& name, const std::string& pool, Bytes nominal) {
    CacheQuota quota;
    quota.meta.ns = "team";
    quota.meta.name = name;
    quota.spec.pool_ref = pool;
    quota.spec.nominal_quota = nominal;
    return quota;
}

inline Node make_node(const std::string& name) {
    Node node;
    node.meta.name = name;
    node.ready = true;
    return node;
}

inline TrainingJobView make_view(TrainingJob job = make_training_job()) {
    TrainingJobView view;
    view.job = std::move(job);
    view.datasets = resolve_datasets(view.job, {make_dataset()});
    view.pool = resolve_pool(view.job, {make_pool()}, {});
    view.settings.sidecar_image = "sidecar:1";
    view.nodes = {make_node("n1"), make_node("n2")};
    return view;
}

// A running Job of the view's TrainingJob.
inline Job make_job(const TrainingJobView& view, std::int64_t attempt) {
    Job job;
    job.meta.ns = view.job.meta.ns;
    job.meta.name = job_name(view.job, attempt);
    job.meta.uid = "uid-" + job.meta.name;
    job.meta.labels[std::string{kAttemptLabel}] = std::to_string(attempt);
    job.meta.owners = {
        {"stoker.dev/v1alpha1", "TrainingJob", view.job.meta.name, view.job.meta.uid, true}};
    job.completions = view.job.spec.trainer.node_count;
    job.active = view.job.spec.trainer.node_count;
    job.ready = job.active;
    job.start_time = wall(0);
    return job;
}

inline Pod make_pod(const TrainingJobView& view, std::int64_t attempt, std::int64_t rank) {
    Pod pod;
    pod.meta.ns = view.job.meta.ns;
    pod.meta.name = job_name(view.job, attempt) + "-" + std::to_string(rank) + "-xyzab";
    pod.meta.labels["batch.kubernetes.io/job-name"] = job_name(view.job, attempt);
    pod.meta.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
    pod.node_name = rank % 2 == 0 ? "n1" : "n2";
    pod.phase = PodPhase::kRunning;
    pod.ready = true;
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        pod.node_directories.push_back(dataset.ns + "/" + dataset.uid);
    }
    return pod;
}

inline ObjectMeta make_service(const TrainingJobView& view) {
    ObjectMeta meta;
    meta.ns = view.job.meta.ns;
    meta.name = service_name(view.job);
    meta.owners = {
        {"stoker.dev/v1alpha1", "TrainingJob", view.job.meta.name, view.job.meta.uid, true}};
    return meta;
}

// A view during attempt `attempt`: all ranks run.
inline TrainingJobView make_running_view(std::int64_t attempt = 1) {
    TrainingJobView view = make_view();
    view.job.status.attempt = attempt;
    view.job.status.restarts = attempt - 1;
    view.job.status.start_time = wall(0);
    view.service = make_service(view);
    view.jobs = {make_job(view, attempt)};
    view.pods = {make_pod(view, attempt, 0), make_pod(view, attempt, 1)};
    return view;
}

inline JobUse use_of(const TrainingJobView& view) {
    return {view.job, view.datasets, view.pool, {view.pods.begin(), view.pods.end()}};
}

// One pool on two nodes, and the only job, which runs there.
inline ClusterView make_cluster() {
    ClusterView cluster;
    cluster.pools = {make_pool()};
    cluster.nodes = {make_node("n1"), make_node("n2")};
    cluster.datasets = {make_dataset()};
    cluster.jobs = {use_of(make_running_view())};
    return cluster;
}

// Report of a rank's sidecar: it leads, and the dataset is listed.
inline SidecarReport make_report(
    const TrainingJobView& view, std::int64_t rank, std::int64_t second) {
    SidecarReport report;
    report.namespace_name = view.job.meta.ns;
    report.pod = make_pod(view, std::max<std::int64_t>(view.job.status.attempt, 1), rank).meta.name;
    report.node = rank % 2 == 0 ? "n1" : "n2";
    report.training_job = view.job.meta.name;
    report.training_job_uid = view.job.meta.uid;
    report.rank = static_cast<std::int32_t>(rank);
    report.received_at = moment(second).steady;
    report.received_wall = wall(second);
    report.attached = true;
    DatasetReport dataset;
    dataset.name = "train";
    dataset.dataset_uid = "uid-imagenet";
    dataset.leader = true;
    dataset.manifest_state = ManifestState::kReady;
    dataset.samples = 1000;
    dataset.total_bytes = gib(4);
    report.datasets = {dataset};
    return report;
}

}  // namespace stoker::control
