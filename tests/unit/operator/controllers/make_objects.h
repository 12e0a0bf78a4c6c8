#pragma once

#include <string>

#include "operator/api/cache_pool.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"
#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/build_job.h"
#include "operator/sidecars/report_rules.h"

// One job "mnist" on one Dataset, one pool and one node, as the API server returns them. A test
// changes only its relevant fields.
namespace stoker::control {

inline TrainingJob make_running_job() {
    TrainingJob job;
    job.meta.ns = "ml";
    job.meta.name = "mnist";
    job.meta.uid = "j1";
    job.meta.generation = 1;
    job.spec.trainer.image = "trainer:1";
    JobDataset dataset;
    dataset.name = "train";
    dataset.dataset_ref = "digits";
    job.spec.datasets = {dataset};
    job.status.attempt = 1;
    return job;
}

inline Dataset make_digits() {
    Dataset dataset;
    dataset.meta.ns = "ml";
    dataset.meta.name = "digits";
    dataset.meta.uid = "d1";
    dataset.meta.generation = 1;
    DatasetSource source;
    source.storage_uri = "s3://bucket/digits";
    dataset.spec.sources = {source};
    return dataset;
}

inline CachePool make_nvme() {
    CachePool pool;
    pool.meta.name = "nvme";
    pool.meta.uid = "p1";
    pool.spec.host_path = "/var/lib/stoker";
    pool.spec.capacity_per_node = gib(1);
    return pool;
}

inline Node make_ready_node(const std::string& name) {
    Node node;
    node.meta.name = name;
    node.meta.uid = name + "-uid";
    node.boot_id = "boot-1";
    node.ready = true;
    return node;
}

inline ObjectMeta make_namespace(const std::string& name, const TextMap& labels = {}) {
    ObjectMeta meta;
    meta.name = name;
    meta.uid = name + "-uid";
    meta.labels = labels;
    return meta;
}

// Dataset "digits" in namespace "data", shared with team vision.
inline Dataset make_shared_digits() {
    Dataset dataset = make_digits();
    dataset.meta.ns = "data";
    dataset.spec.shared_with = LabelSelector{{{"team", "vision"}}, {}};
    return dataset;
}

// A DatasetWarmup that fills make_shared_digits() on node-1.
inline DatasetWarmup make_digits_warmup() {
    DatasetWarmup warmup;
    warmup.meta.ns = "data";
    warmup.meta.name = "warm";
    warmup.spec.dataset_ref = "digits";
    warmup.status.pool = "nvme";
    warmup.status.nodes.emplace_back().node = "node-1";
    return warmup;
}

// The running job "mnist", but it reads the dataset of namespace "data".
inline TrainingJob make_reading_job() {
    TrainingJob job = make_running_job();
    job.spec.datasets[0].dataset_ref_namespace = "data";
    return job;
}

// Child Job of "mnist", attempt 1, as the Job controller returns it.
inline Job make_child_job() {
    Job job;
    job.meta.ns = "ml";
    job.meta.name = "mnist-a1";
    job.meta.uid = "b1";
    job.meta.labels = {{std::string{kJobLabel}, "mnist"}, {std::string{kAttemptLabel}, "1"}};
    job.meta.owners = {{"stoker.dev/v1alpha1", "TrainingJob", "mnist", "j1", true}};
    job.active = 1;
    job.ready = 1;
    return job;
}

inline Pod make_running_pod(const std::string& node = "node-1") {
    Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = "mnist-a1-0-x";
    pod.meta.uid = "pod-uid";
    pod.meta.labels = {
        {std::string{kJobLabel}, "mnist"}, {"batch.kubernetes.io/job-name", "mnist-a1"}};
    pod.node_name = node;
    pod.phase = PodPhase::kRunning;
    pod.ready = true;
    pod.node_directories = {"ml/d1"};
    return pod;
}

inline Hello make_sidecar_hello() {
    Hello hello;
    hello.namespace_name = "ml";
    hello.pod = "mnist-a1-0-x";
    hello.node = "node-1";
    hello.training_job = "mnist";
    hello.training_job_uid = "j1";
    hello.version = "test";
    hello.mounts = {{"train", "d1"}};
    return hello;
}

// The filler of make_shared_digits() on `node`, as the API server returns it.
inline Job make_child_filler(const std::string& node = "node-1") {
    ResolvedPool pool;
    pool.name = "nvme";
    const JobManifest manifest = build_filler({make_shared_digits(), pool, JobSettings{}, node});
    Job job;
    job.meta = manifest.meta;
    job.meta.uid = "filler-uid";
    job.active_deadline_seconds = manifest.active_deadline_seconds;
    return job;
}

inline Pod make_filler_pod(const Job& job) {
    Pod pod;
    pod.meta.ns = job.meta.ns;
    pod.meta.name = job.meta.name + "-x";
    pod.meta.uid = "filler-pod-uid";
    pod.meta.labels = job.meta.labels;
    pod.meta.labels["batch.kubernetes.io/job-name"] = job.meta.name;
    pod.meta.annotations = job.meta.annotations;
    pod.node_name = place_of(job.meta).node;
    pod.phase = PodPhase::kRunning;
    pod.ready = true;
    pod.node_directories = {"data/d1"};
    return pod;
}

inline Hello make_filler_hello(const Pod& pod) {
    Hello hello;
    hello.namespace_name = pod.meta.ns;
    hello.pod = pod.meta.name;
    hello.node = pod.node_name;
    hello.training_job = "filler/digits/nvme";
    hello.training_job_uid = "d1";
    hello.version = "test";
    hello.mounts = {{"digits", "d1"}};
    return hello;
}

// The listing has 100 samples; 60 of them are on the node.
inline Report make_sidecar_report(std::uint64_t sequence) {
    Report report;
    report.sequence = sequence;
    DatasetReport dataset;
    dataset.name = "train";
    dataset.dataset_uid = "d1";
    dataset.leader = true;
    dataset.manifest_state = ManifestState::kReady;
    dataset.revision = "0123456789abcdef";
    dataset.samples = 100;
    dataset.total_bytes = Bytes{100'000};
    dataset.resident_bytes = Bytes{60'000};
    dataset.resident_samples = 60;
    report.datasets = {dataset};
    return report;
}

}  // namespace stoker::control
