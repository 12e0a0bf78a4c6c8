#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "operator/core/spec/validate.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

struct Case {
    std::string name;
    std::function<void(TrainingJob&)> spoil;
    std::string path;
    std::string message;
};

void show_files(TrainingJob& job, const std::string& path) {
    job.spec.datasets.back().access = DatasetAccess::kFiles;
    job.spec.datasets.back().mount_path = path;
}

JobDataset& dataset_of(TrainingJob& job) {
    return job.spec.datasets.front();
}

TEST(ValidateTrainingJob, AcceptsAValidJob) {
    EXPECT_TRUE(validate(make_training_job()).empty());
    TrainingJob job = make_training_job(std::string(52, 'n'));
    job.spec.trainer.processes_per_node = "8";
    job.spec.trainer.resources.limits = {{"cpu", "500m"}, {"nvidia.com/gpu", "8"}};
    job.spec.datasets.push_back(dataset_of(job));
    job.spec.datasets.back().name = "val";
    job.spec.datasets.back().dataset_ref.reset();
    job.spec.datasets.back().storage_uri = "s3://bucket/a b/ü..x/.hidden";
    job.spec.datasets.back().secret_ref = "s3";
    job.spec.cache.mode = CacheMode::kFixed;
    job.spec.cache.max_bytes = job.spec.cache.min_bytes = gib(1);
    EXPECT_EQ(to_string(validate(job)), "");
}

const std::vector<Case>& wrong_jobs() {
    static const std::vector<Case> kCases = {
        {"a name of 53 characters",
         [](TrainingJob& job) { job.meta.name = std::string(53, 'n'); },
         "metadata.name",
         "at most 52"},
        {"a name with a dot",
         [](TrainingJob& job) { job.meta.name = "a.b"; },
         "metadata.name",
         "DNS label"},
        {"a name that begins with a digit",
         [](TrainingJob& job) { job.meta.name = "1a"; },
         "metadata.name",
         "DNS label"},
        {"no name", [](TrainingJob& job) { job.meta.name = ""; }, "metadata.name", "DNS label"},
        {"no image",
         [](TrainingJob& job) { job.spec.trainer.image = ""; },
         "spec.trainer.image",
         "missing"},
        {"zero nodes",
         [](TrainingJob& job) { job.spec.trainer.node_count = 0; },
         "spec.trainer.numNodes",
         "1 to 10000"},
        {"too many nodes",
         [](TrainingJob& job) { job.spec.trainer.node_count = 10001; },
         "spec.trainer.numNodes",
         "1 to"},
        {"zero processes",
         [](TrainingJob& job) { job.spec.trainer.processes_per_node = "0"; },
         "spec.trainer.numProcPerNode",
         "auto"},
        {"a word as processes",
         [](TrainingJob& job) { job.spec.trainer.processes_per_node = "all"; },
         "spec.trainer.numProcPerNode",
         "auto"},
        {"half a process",
         [](TrainingJob& job) { job.spec.trainer.processes_per_node = "1500m"; },
         "spec.trainer.numProcPerNode",
         "auto"},
        {"a variable of ours",
         [](TrainingJob& job) {
             job.spec.trainer.env = {{"STOKER_X", "1", {}}};
         },
         "spec.trainer.env[STOKER_X]",
         "set by Stoker"},
        {"value and valueFrom",
         [](TrainingJob& job) {
             job.spec.trainer.env = {{"A", "1", Json::parse("{}").value()}};
         },
         "spec.trainer.env[A]",
         "not both"},
        {"a wrong quantity",
         [](TrainingJob& job) {
             job.spec.trainer.resources.limits = {{"cpu", "lots"}};
         },
         "spec.trainer.resourcesPerNode.limits[cpu]",
         "not a quantity"},
        {"a label of ours",
         [](TrainingJob& job) {
             job.spec.pod_template.labels = {{"stoker.dev/x", ""}};
         },
         "spec.podTemplate.metadata.labels",
         "set by Stoker"},
        {"a volume of ours",
         [](TrainingJob& job) { job.spec.pod_template.volume_names = {"stoker-node"}; },
         "spec.podTemplate.spec.volumes[stoker-node]",
         "set by Stoker"},
        {"a mount at /stoker by another spelling",
         [](TrainingJob& job) {
             job.spec.pod_template.trainer.volume_mount_paths = {"/tmp/..//stoker"};
         },
         "spec.podTemplate.spec.containers[trainer].volumeMounts[/tmp/..//stoker]",
         "/stoker is where Stoker mounts the cache; choose another path"},
        {"a mount below /stoker",
         [](TrainingJob& job) { job.spec.pod_template.trainer.volume_mount_paths = {"/stoker/x"}; },
         "spec.podTemplate.spec.containers[trainer].volumeMounts[/stoker/x]",
         "choose another path"},
        {"a mount of our volume",
         [](TrainingJob& job) {
             job.spec.pod_template.trainer.volume_mount_names = {"stoker-run"};
         },
         "spec.podTemplate.spec.containers[trainer].volumeMounts[stoker-run]",
         "mounted by Stoker"},
        {"a second container",
         [](TrainingJob& job) { job.spec.pod_template.container_names = {"helper"}; },
         "spec.podTemplate.spec.containers[helper]",
         "only the container named trainer"},
        {"an init container of our name",
         [](TrainingJob& job) { job.spec.pod_template.init_container_names = {"stoker-sidecar"}; },
         "spec.podTemplate.spec.initContainers[stoker-sidecar]",
         "are taken"},
        {"a volume of ours in an init container",
         [](TrainingJob& job) {
             job.spec.pod_template.init_container_mounts = {{"setup", "stoker-node-0"}};
         },
         "spec.podTemplate.spec.initContainers[setup].volumeMounts[stoker-node-0]",
         "mounted by Stoker"},
        {"a volume of our CSI driver",
         [](TrainingJob& job) {
             job.spec.pod_template.csi_drivers = {{"peek", "csi.stoker.dev"}};
         },
         "spec.podTemplate.spec.volumes[peek]",
         "added by Stoker"},
        {"an endpoint beside datasetRef",
         [](TrainingJob& job) { dataset_of(job).endpoint = "http://minio:9000"; },
         "spec.datasets[train]",
         "belong to storageUri"},
        {"a private CA beside datasetRef",
         [](TrainingJob& job) { dataset_of(job).ca_bundle = CaBundle{}; },
         "spec.datasets[train]",
         "belong to storageUri"},
        {"hostNetwork",
         [](TrainingJob& job) { job.spec.pod_template.host_network = true; },
         "spec.podTemplate.spec.hostNetwork",
         "does not work yet"},
        {"hostPID",
         [](TrainingJob& job) { job.spec.pod_template.host_pid = true; },
         "spec.podTemplate.spec.hostPID",
         "does not work yet"},
        {"shareProcessNamespace",
         [](TrainingJob& job) { job.spec.pod_template.share_process_namespace = true; },
         "spec.podTemplate.spec.shareProcessNamespace",
         "does not work yet"},
        {"restartPolicy",
         [](TrainingJob& job) { job.spec.pod_template.restart_policy = "Always"; },
         "spec.podTemplate.spec.restartPolicy",
         "must be Never"},
        {"a negative backoffLimit",
         [](TrainingJob& job) { job.spec.run_policy.backoff_limit = -1; },
         "spec.runPolicy.backoffLimit",
         "0 or more"},
        {"a deadline of zero",
         [](TrainingJob& job) { job.spec.run_policy.active_deadline_seconds = 0; },
         "spec.runPolicy.activeDeadlineSeconds",
         "1 or more"},
        {"a negative time after the end",
         [](TrainingJob& job) { job.spec.run_policy.ttl_seconds_after_finished = -1; },
         "spec.runPolicy.ttlSecondsAfterFinished",
         "0 or more"},
        {"no datasets",
         [](TrainingJob& job) { job.spec.datasets.clear(); },
         "spec.datasets",
         "at least one"},
        {"two datasets of one name",
         [](TrainingJob& job) { job.spec.datasets.push_back(dataset_of(job)); },
         "spec.datasets[train].name",
         "a name of its own"},
        {"a dataset name with a slash",
         [](TrainingJob& job) { dataset_of(job).name = "a/b"; },
         "spec.datasets[a/b].name",
         "DNS label"},
        {"both origins",
         [](TrainingJob& job) { dataset_of(job).storage_uri = "s3://bucket"; },
         "spec.datasets[train]",
         "exactly one"},
        {"no origin",
         [](TrainingJob& job) { dataset_of(job).dataset_ref.reset(); },
         "spec.datasets[train]",
         "exactly one"},
        {"a namespace that cannot be",
         [](TrainingJob& job) { dataset_of(job).dataset_ref_namespace = "a/b"; },
         "spec.datasets[train].datasetRef.namespace",
         "name of a namespace"},
        {"an inline directory",
         [](TrainingJob& job) {
             dataset_of(job).dataset_ref.reset();
             dataset_of(job).storage_uri = "file:///x";
         },
         "spec.datasets[train].storageUri",
         "s3://bucket/prefix"},
        {"a Secret without an inline origin",
         [](TrainingJob& job) { dataset_of(job).secret_ref = "s"; },
         "spec.datasets[train].secretRef",
         "belongs to storageUri"},
        {"access Files without mountPath",
         [](TrainingJob& job) { dataset_of(job).access = DatasetAccess::kFiles; },
         "spec.datasets[train].mountPath",
         "access Files needs mountPath"},
        {"access Files without a cache",
         [](TrainingJob& job) {
             show_files(job, "/data");
             job.spec.cache = {};
             job.spec.cache.mode = CacheMode::kOff;
         },
         "spec.datasets[train].access",
         "another cache.mode"},
        {"access Files with another contract",
         [](TrainingJob& job) {
             show_files(job, "/data");
             dataset_of(job).contract = Contract::kWindowed;
         },
         "spec.datasets[train].contract",
         "other contracts need the library"},
        {"a dataset shown twice",
         [](TrainingJob& job) {
             show_files(job, "/data");
             job.spec.datasets.push_back(dataset_of(job));
             job.spec.datasets[0].name = "first";
             job.spec.datasets[0].mount_path = "/first";
         },
         "spec.datasets[train].access",
         "name it once"},
        {"a relative mountPath",
         [](TrainingJob& job) { show_files(job, "data"); },
         "spec.datasets[train].mountPath",
         "absolute path"},
        {"a mountPath with ..",
         [](TrainingJob& job) { show_files(job, "/data/../x"); },
         "spec.datasets[train].mountPath",
         "absolute path"},
        {"a mountPath in /proc",
         [](TrainingJob& job) { show_files(job, "/proc/1"); },
         "spec.datasets[train].mountPath",
         "are taken"},
        {"a mountPath where the kubelet mounts files",
         [](TrainingJob& job) { show_files(job, "/etc"); },
         "spec.datasets[train].mountPath",
         "are taken"},
        {"a mountPath above the token of the ServiceAccount",
         [](TrainingJob& job) { show_files(job, "/var"); },
         "spec.datasets[train].mountPath",
         "are taken"},
        {"a mountPath below a volume mount",
         [](TrainingJob& job) {
             show_files(job, "/data/train");
             job.spec.pod_template.trainer.volume_mount_paths = {"/data"};
         },
         "spec.datasets[train].mountPath",
         "contain each other"},
        {"access S3 with another contract",
         [](TrainingJob& job) {
             dataset_of(job).access = DatasetAccess::kS3;
             dataset_of(job).contract = Contract::kWindowed;
         },
         "spec.datasets[train].contract",
         "other contracts need the library"},
        {"mountPath",
         [](TrainingJob& job) { dataset_of(job).mount_path = "/d"; },
         "spec.datasets[train].mountPath",
         "belongs to access Files"},
        {"sampling Weighted",
         [](TrainingJob& job) { dataset_of(job).sampling = Sampling::kWeighted; },
         "spec.datasets[train].sampling",
         "does not work yet"},
        {"sizes with mode Off",
         [](TrainingJob& job) {
             job.spec.cache.mode = CacheMode::kOff;
             job.spec.cache.max_bytes = gib(1);
         },
         "spec.cache",
         "mode Off excludes minBytes"},
        {"a pool with mode Off",
         [](TrainingJob& job) {
             job.spec.cache.mode = CacheMode::kOff;
             job.spec.cache.pool_ref = "p";
         },
         "spec.cache",
         "mode Off excludes poolRef"},
        {"mode Fixed without a size",
         [](TrainingJob& job) { job.spec.cache.mode = CacheMode::kFixed; },
         "spec.cache",
         "needs maxBytes"},
        {"no bytes at all",
         [](TrainingJob& job) { job.spec.cache.max_bytes = Bytes::zero(); },
         "spec.cache.maxBytes",
         "more than 0"},
        {"minBytes over maxBytes",
         [](TrainingJob& job) {
             job.spec.cache.max_bytes = gib(1);
             job.spec.cache.min_bytes = gib(2);
         },
         "spec.cache.minBytes",
         "not be more"},
        {"a weight of nothing",
         [](TrainingJob& job) { job.spec.cache.weight = 0; },
         "spec.cache.weight",
         "1 to 1000"},
        {"a weight beyond all others",
         [](TrainingJob& job) { job.spec.cache.weight = kCacheWeightMax + 1; },
         "spec.cache.weight",
         "1 to 1000"},
        {"medium Memory",
         [](TrainingJob& job) { job.spec.cache.medium = Medium::kMemory; },
         "spec.cache.medium",
         "does not work yet"},
        {"warmup",
         [](TrainingJob& job) { job.spec.cache.warmup = Warmup::kBeforeStart; },
         "spec.cache.warmup",
         "do not work yet"},
        {"onCacheFailure Fail",
         [](TrainingJob& job) { job.spec.cache.on_cache_failure = OnCacheFailure::kFail; },
         "spec.cache.onCacheFailure",
         "does not work yet"},
    };
    return kCases;
}

TEST(ValidateTrainingJob, NamesTheWrongFieldAndTheFix) {
    for (const Case& c : wrong_jobs()) {
        SCOPED_TRACE(c.name);
        TrainingJob job = make_training_job();
        c.spoil(job);
        const std::vector<FieldError> errors = validate(job);
        ASSERT_EQ(errors.size(), 1U) << to_string(errors);
        EXPECT_EQ(errors.front().path, c.path);
        EXPECT_NE(errors.front().message.find(c.message), std::string::npos)
            << errors.front().message;
    }
}

std::string parameter_errors(Contract contract, Contract member, ContractParameters parameters) {
    TrainingJob job = make_training_job();
    dataset_of(job).contract = contract;
    dataset_of(job).parameters[member] = std::move(parameters);
    job.spec.trainer.node_count = 1;
    return to_string(validate(job));
}

TEST(ValidateTrainingJob, AcceptsEveryContractAndPolicy) {
    TrainingJob job = make_training_job();
    for (const Contract contract :
         {Contract::kExact, Contract::kWindowed, Contract::kImportance, Contract::kReplicate}) {
        dataset_of(job).contract = contract;
        for (const EvictionPolicy policy :
             {EvictionPolicy::kAuto,
              EvictionPolicy::kUniform,
              EvictionPolicy::kLru,
              EvictionPolicy::kLfu,
              EvictionPolicy::kNone}) {
            job.spec.cache.eviction_policy = policy;
            EXPECT_EQ(to_string(validate(job)), "");
        }
    }
}

TEST(ValidateTrainingJob, AcceptsTheParametersOfItsContract) {
    const Contract importance = Contract::kImportance;
    EXPECT_EQ(
        parameter_errors(importance, importance, {{{"beta", 0.33}, {"warmupEpochs", 5}}, {}}), "");
    EXPECT_EQ(
        parameter_errors(
            importance,
            importance,
            {{{"outRate", 0.1}}, {{"family", "Iowa"}, {"redundancy", "Remove"}}}),
        "");
    EXPECT_EQ(
        parameter_errors(Contract::kReplicate, Contract::kReplicate, {{{"replication", 3}}, {}}),
        "");
    EXPECT_EQ(
        parameter_errors(Contract::kWindowed, Contract::kWindowed, {{{"chunkGroup", 8}}, {}}), "");
}

TEST(ValidateTrainingJob, RefusesOutOfRangeParameters) {
    const Contract importance = Contract::kImportance;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double beta : {-0.1, 16.1, nan, std::numeric_limits<double>::infinity()}) {
        EXPECT_EQ(
            parameter_errors(importance, importance, {{{"beta", beta}}, {}}),
            "spec.datasets[train].importance.beta: beta must be a number from 0 to 16")
            << beta;
    }
    EXPECT_EQ(
        parameter_errors(importance, importance, {{{"warmupEpochs", 2.5}}, {}}),
        "spec.datasets[train].importance.warmupEpochs: warmupEpochs must be a whole number from 0 "
        "to "
        "10000");
    EXPECT_EQ(
        parameter_errors(importance, importance, {{{"outRate", 0.5}}, {}}),
        "spec.datasets[train].importance.outRate: outRate belongs to family Iowa");
    EXPECT_EQ(
        parameter_errors(importance, importance, {{{"beta", 0.5}}, {{"family", "Iowa"}}}),
        "spec.datasets[train].importance.beta: beta belongs to family ICache");
    EXPECT_EQ(
        parameter_errors(importance, importance, {{}, {{"family", "Other"}}}),
        "spec.datasets[train].importance.family: 'Other' is not an allowed value");
    EXPECT_EQ(
        parameter_errors(Contract::kReplicate, Contract::kReplicate, {{{"replication", 1.3}}, {}}),
        "spec.datasets[train].replicate.replication: replication must be a number from 1 to 64, in "
        "halves");
    EXPECT_EQ(
        parameter_errors(Contract::kExact, Contract::kWindowed, {{{"chunkGroup", 8}}, {}}),
        "spec.datasets[train].windowed: windowed belongs to contract Windowed; leave it out or "
        "choose "
        "that contract");
}

TEST(ValidateTrainingJob, ReportsAllErrorsTogether) {
    TrainingJob job = make_training_job();
    job.spec.trainer.image = "";
    job.spec.trainer.node_count = 0;
    job.spec.cache.warmup = Warmup::kBackground;
    EXPECT_EQ(validate(job).size(), 3U);
}

}  // namespace
}  // namespace stoker::control
