#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "operator/api/dataset.h"
#include "operator/api/foreign_pod.h"
#include "operator/core/workload/build_job.h"

// Pods of other controllers (docs/adr/0020-foreign-pods.md): the TrainingJob that describes their
// workload, and the patch that adds the cache to one of them. Pure: equal inputs, equal results.
namespace stoker::control {

// The workload of a pod: its topmost controller.
struct ForeignWorkload {
    WorkloadRef ref;
    std::string attempt_uid;                // of the pod's own controller
    std::optional<std::int64_t> pod_count;  // nullopt: the workload does not say

    bool operator==(const ForeignWorkload&) const = default;
};

// "pytorchjob-resnet": one name for all pods of the workload. A name that is too long or no DNS
// label is cut and gets a digest.
std::string foreign_job_name(const WorkloadRef& workload);

// The container that reads: the one in kContainerAnnotation, else kubectl's default container, else
// the first. nullptr: the pod has no container with the annotation's name.
const ForeignContainer* reader_of(const ForeignPod& pod);

// nullptr: there is no such Dataset.
using FindDataset = std::function<const Dataset*(const ObjectKey& key)>;

// The spec of the TrainingJob of the pod's workload. Its datasets are those of the label and the
// annotations. A dataset without an access gets Files if it has a mountPath, else S3 where that
// works, so that a program needs no changed line, else SDK. kInvalidArgument: a sentence that says
// what is wrong with the pod, its label or its annotations.
Result<Json> foreign_spec(
    const ForeignPod& pod,
    const std::string& ns,
    const ForeignWorkload& workload,
    const FindDataset& find_dataset);

// The body of that TrainingJob's create. The workload owns the TrainingJob without being its
// controller, so deleting the workload deletes both.
Json foreign_body(const std::string& ns, const WorkloadRef& workload, const Json& spec);

// `stored`, the workload's TrainingJob, with the accesses and mount paths of `asked`, which has
// foreign_spec(): a pod template says how its program reads, and it may change while the workload
// lives. Datasets that `asked` lacks stay, without files: the sidecar serves them, but the program
// sees access SDK, or S3 with format Blocks, which has no SDK. kInvalidArgument: a sentence that
// says why the pod cannot read like this.
Result<TrainingJob> with_accesses(
    const ForeignPod& pod,
    TrainingJob stored,
    const TrainingJob& asked,
    const FindDataset& find_dataset);

// Input of foreign_patch() besides the pod.
struct ForeignInput {
    const Json& spec;        // foreign_spec(), for kWorkloadAnnotation
    const TrainingJob& job;  // with `spec`, or as it is in the cluster
    const std::vector<ResolvedDataset>& datasets;
    const ResolvedPool& pool;  // with a name
    const JobSettings& settings;
    const ForeignWorkload& workload;
};

// The JSON Patch that lets `raw`, a pod with reader_of(), read through the cache; empty if it does
// already. With access S3 it replaces AWS_ENDPOINT_URL; The container's own S3 keys stay, and the
// S3 endpoint accepts them.
Json foreign_patch(const Json& raw, const ForeignPod& pod, const ForeignInput& input);

// A sentence if a dataset got access SDK because the container's AWS_ENDPOINT_URL is another server:
// replacing it would cut the program off from that server. Else empty.
std::string tell_bypass(const ForeignPod& pod, const std::vector<ResolvedDataset>& datasets);

// Names the things that a refused pod runs without: "a cache", or "a cache, and without files in /data, /val".
std::string describe_lack(const ForeignPod& pod);

// The JSON Patch that adds kRefusalAnnotation to a pod that runs without a cache.
Json refusal_patch(const Json& raw, const std::string& reason);

}  // namespace stoker::control
