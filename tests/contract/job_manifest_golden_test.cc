// The Jobs and Services made from TrainingJobs, as readable files that crd_server_test.py also submits
// to a real API server. STOKER_UPDATE_GOLDEN=1 rewrites them.

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "operator/core/spec/validate.h"
#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/foreign_job.h"
#include "tests/support/api_server/json_patch.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// One field per line, indented by two blanks per level.
std::string indented(const std::string& json) {
    std::string result;
    std::size_t depth = 0;
    bool in_text = false;
    const auto new_line = [&] { result += "\n" + std::string(depth * 2, ' '); };
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (c == '"' && (i == 0 || json[i - 1] != '\\')) {
            in_text = !in_text;
        }
        const bool is_empty = i > 0 && (json[i - 1] == '{' || json[i - 1] == '[');
        if (!in_text && (c == '}' || c == ']') && !is_empty) {
            --depth;
            new_line();
        }
        result += c;
        const bool opens_empty = i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']');
        if (!in_text && (c == '{' || c == '[') && !opens_empty) {
            ++depth;
            new_line();
        } else if (!in_text && c == ',') {
            new_line();
        } else if (!in_text && c == ':') {
            result += ' ';
        }
    }
    return result + "\n";
}

void expect_golden(const std::string& name, const std::string& json) {
    const std::string path =
        std::string{STOKER_SOURCE_DIR} + "/tests/contract/golden/" + name + ".json";
    if (std::getenv("STOKER_UPDATE_GOLDEN") != nullptr) {
        std::ofstream{path} << indented(json);
    }
    std::ifstream file{path};
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(indented(json), golden.str()) << "see tests/contract/golden/" << name << ".json";
}

JobManifest manifest_of(const TrainingJobView& view) {
    return build_job({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
}

JobSettings settings() {
    JobSettings result;
    result.sidecar_image = "registry.example.com/stoker-sidecar:0.1.0";
    result.sidecar_image_pull_policy = "IfNotPresent";
    result.sidecar_resources = {{{"memory", "1Gi"}}, {{"cpu", "100m"}, {"memory", "256Mi"}}};
    result.s3_resources = {{{"memory", "256Mi"}}, {{"cpu", "50m"}, {"memory", "64Mi"}}};
    result.files_resources = {{{"memory", "512Mi"}}, {{"cpu", "50m"}, {"memory", "64Mi"}}};
    result.control_address = "stoker-control.stoker-system.svc:9443";
    result.control_ca_pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    return result;
}

TEST(JobManifestGolden, SmallestJob) {
    TrainingJobView view = make_view();
    view.settings = settings();
    expect_golden("job-minimal", to_json(manifest_of(view)).text());
    expect_golden("service", to_json(build_service(view.job)).text());
}

TEST(JobManifestGolden, JobWithoutACache) {
    TrainingJob job = make_training_job();
    job.spec.cache.mode = CacheMode::kOff;
    TrainingJobView view = make_view(job);
    view.pool = resolve_pool(job, {make_pool()}, {});
    view.settings = settings();
    expect_golden("job-without-cache", to_json(manifest_of(view)).text());
}

// The manifest of `job`, whose dataset is in an S3 bucket.
std::string manifest_from_s3(const TrainingJob& job) {
    TrainingJobView view = make_view(job);
    Dataset dataset = make_dataset();
    dataset.spec.sources[0] = {
        "s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    view.datasets = resolve_datasets(view.job, {dataset});
    EXPECT_TRUE(view.datasets.blocker.empty()) << view.datasets.blocker.message;
    view.settings = settings();
    return to_json(manifest_of(view)).text();
}

TEST(JobManifestGolden, JobWithAccessS3) {
    TrainingJob job = make_training_job();
    job.spec.datasets[0].access = DatasetAccess::kS3;
    expect_golden("job-s3", manifest_from_s3(job));
}

TEST(JobManifestGolden, JobWithAccessFiles) {
    TrainingJob job = make_training_job();
    job.spec.datasets[0].access = DatasetAccess::kFiles;
    job.spec.datasets[0].mount_path = "/data/train";
    expect_golden("job-files", manifest_from_s3(job));
}

// A template that sets every field.
TrainingJob full_job() {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({
      "metadata": {"name": "resnet", "namespace": "default", "uid": "uid-resnet",
                   "labels": {"kueue.x-k8s.io/queue-name": "vision"}},
      "spec": {
        "trainer": {"image": "registry.example.com/resnet:2.1", "command": ["torchrun", "train.py"],
                    "args": ["--epochs", "90"], "numNodes": 4, "numProcPerNode": "gpu",
                    "env": [{"name": "OMP_NUM_THREADS", "value": "8"},
                            {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "token"}}}],
                    "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8, "cpu": 96, "memory": "800Gi"}}},
        "podTemplate": {
          "metadata": {"labels": {"team": "vision"}, "annotations": {"example.com/note": "\"quoted\""}},
          "spec": {"serviceAccountName": "trainer", "automountServiceAccountToken": true,
                   "nodeSelector": {"gpu": "a100"}, "priorityClassName": "", "schedulerName": "mine",
                   "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                     {"topologyKey": "kubernetes.io/hostname",
                      "labelSelector": {"matchLabels": {"team": "vision"}}}]}},
                   "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                   "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                     "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"team": "vision"}}}],
                   "imagePullSecrets": [{"name": "pull"}], "securityContext": {"runAsUser": 1000},
                   "terminationGracePeriodSeconds": 300, "hostIPC": true,
                   "volumes": [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "c"}}],
                   "initContainers": [{"name": "prepare", "image": "prepare:1"}],
                   "containers": [{"name": "trainer", "imagePullPolicy": "Always", "workingDir": "/app",
                     "envFrom": [{"configMapRef": {"name": "settings"}}], "ports": [{"containerPort": 6006}],
                     "securityContext": {"runAsNonRoot": true},
                     "volumeMounts": [{"name": "checkpoints", "mountPath": "/checkpoints"}]}]}},
        "datasets": [{"name": "train", "datasetRef": {"name": "imagenet"}},
                     {"name": "val", "datasetRef": {"name": "nfs"}}]}})");
    EXPECT_TRUE(job) << job.error().message;
    EXPECT_EQ(to_string(validate(*job)), "");
    return *job;
}

// A pod of another controller as the webhook leaves it, and the TrainingJob of its workload.
struct ForeignObjects {
    Json pod;
    Json job;
};

ForeignObjects inject(const std::string& annotations) {
    const Json pod = Json::parse(
                         R"({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "web-", "labels": {"stoker.dev/dataset": "imagenet"},
                     "annotations": )" +
                         annotations + R"(},
        "spec": {"containers": [{"name": "main", "image": "train:1"}]}})")
                         .value();
    const ForeignWorkload workload{{"apps/v1", "Deployment", "web", "uid-web"}, "uid-web-1", 2};
    Dataset dataset = make_dataset();
    dataset.spec.sources[0] = {
        "s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    const auto find = [&](const ObjectKey&) { return &dataset; };
    const ForeignPod parsed = read_document<ForeignPod>(pod).value();
    const Json spec = foreign_spec(parsed, "team", workload, find).value();
    const Json body = foreign_body("team", workload.ref, spec);
    const TrainingJob job = read_document<TrainingJob>(body).value();
    const ResolvedDatasets datasets = resolve_datasets(job, {dataset});
    const ResolvedPool pool = resolve_pool(job, {make_pool()}, {});
    const Json patch =
        foreign_patch(pod, parsed, {spec, job, datasets.datasets, pool, settings(), workload});
    return {test::patched(pod, patch), body};
}

TEST(JobManifestGolden, ForeignPod) {
    const ForeignObjects objects = inject("{}");
    expect_golden("foreign-pod", objects.pod.text());
    expect_golden("foreign-training-job", objects.job.text());
}

TEST(JobManifestGolden, ForeignPodWithAccessFiles) {
    const ForeignObjects objects = inject(R"({"stoker.dev/mount-path": "/data/train"})");
    expect_golden("foreign-files-pod", objects.pod.text());
    expect_golden("foreign-files-training-job", objects.job.text());
}

TEST(JobManifestGolden, FillerJob) {
    Dataset dataset = make_dataset();
    dataset.spec.sources[0] = {
        "s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    ResolvedPool pool;
    pool.name = "nvme";
    expect_golden("filler", to_json(build_filler({dataset, pool, settings(), "node-a"})).text());
}

TEST(JobManifestGolden, JobWithEverything) {
    TrainingJobView view = make_view(full_job());
    Dataset s3 = make_dataset();
    s3.spec.sources[0] = {"s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    Dataset nfs = make_dataset("nfs");
    s3.meta.ns = nfs.meta.ns = view.job.meta.ns;
    nfs.spec.sources[0] = {"file:///val", "", "", {}, {}, SourceVolume{"datasets", {}}};
    view.datasets = resolve_datasets(view.job, {s3, nfs});
    ASSERT_TRUE(view.datasets.blocker.empty()) << view.datasets.blocker.message;
    view.settings = settings();
    JobInput input{view.job, view.datasets.datasets, view.pool, view.settings, 7, {}, {}};
    const std::string& uid = view.datasets.datasets.front().uid;
    const std::vector<Holding> holdings = {
        {view.pool.name, "node-a", uid, gib(100)}, {view.pool.name, "node-b", uid, gib(40)}};
    input.holdings = holdings;
    input.active_deadline_seconds = 3600;
    expect_golden("job-full", to_json(build_job(input)).text());
}

}  // namespace
}  // namespace stoker::control
