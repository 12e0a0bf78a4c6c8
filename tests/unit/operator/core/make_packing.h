#pragma once

#include <string>

#include "operator/api/dataset.h"
#include "operator/api/job.h"
#include "operator/api/pod.h"
#include "operator/core/spec/packing.h"
#include "operator/core/workload/build_packing.h"

// Dataset ml/digits, which is packed from s3://raw/digits to s3://packed/digits, and its Job.
namespace stoker::control {

inline Dataset make_packing_dataset() {
    Dataset dataset;
    dataset.meta.ns = "ml";
    dataset.meta.name = "digits";
    dataset.meta.uid = "d1";
    dataset.meta.generation = 1;
    dataset.spec.format = DatasetFormat::kChunks;
    DatasetSource to;
    to.storage_uri = "s3://packed/digits";
    to.endpoint = "http://minio:9000";
    to.secret_ref = "packed-keys";
    dataset.spec.sources = {to};
    DatasetPacking packing;
    packing.from.storage_uri = "s3://raw/digits";
    packing.from.secret_ref = "raw-keys";
    dataset.spec.packing = packing;
    return dataset;
}

inline Dataset make_packed_dataset() {
    Dataset dataset = make_packing_dataset();
    dataset.status.packing.emplace().packed_digest = packing_digest(dataset.spec);
    return dataset;
}

// The Dataset's Job, as the API server has it.
inline Job make_packing_job(const Dataset& dataset) {
    Job job;
    job.meta = build_packing(dataset, {}).meta;
    job.meta.uid = "uid-" + job.meta.name;
    return job;
}

inline Job make_ended_packing_job(const Dataset& dataset, bool succeeded) {
    Job job = make_packing_job(dataset);
    job.end = JobEnd{succeeded, "", "the Job controller's words", {}};
    return job;
}

inline Pod make_packing_pod(const Job& job, PodPhase phase) {
    Pod pod;
    pod.meta.ns = job.meta.ns;
    pod.meta.name = job.meta.name + "-x";
    pod.meta.uid = "uid-" + pod.meta.name;
    pod.meta.labels = job.meta.labels;
    pod.meta.labels["batch.kubernetes.io/job-name"] = job.meta.name;
    pod.meta.annotations = job.meta.annotations;
    pod.node_name = "n1";
    pod.phase = phase;
    return pod;
}

// A pod that has packed 797 samples.
inline Pod make_successful_packing_pod(const Job& job) {
    Pod pod = make_packing_pod(job, PodPhase::kSucceeded);
    pod.trainer.exit_code = 0;
    pod.trainer.message = R"({"chunks":3,"found":1,"samples":797,"bytes":1048576})";
    return pod;
}

}  // namespace stoker::control
