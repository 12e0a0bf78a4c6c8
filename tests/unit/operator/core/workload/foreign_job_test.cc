#include "operator/core/workload/foreign_job.h"

#include <algorithm>
#include <string>
#include <vector>

#include <cpprest/json.h>
#include <gtest/gtest.h>

#include "operator/api/pod.h"
#include "operator/core/spec/validate.h"
#include "operator/core/workload/build_pod.h"
#include "tests/support/api_server/json_patch.h"
#include "tests/unit/operator/core/make_training_job.h"
#include "tests/unit/operator/core/workload/injected_pod.h"

namespace stoker::control {
namespace {

using web::json::value;

TEST(ForeignPatch, AddsSidecarVolumesAndVariables) {
    const Injected injected{pod_with()};
    const Json pod = injected.patched();
    EXPECT_EQ(
        names(pod, "initContainers"), (std::vector<std::string>{"stoker-sidecar", "stoker-s3"}));
    const value main = container(pod, "containers", "main");
    EXPECT_EQ(env(main, "LR"), "3");
    EXPECT_EQ(env(main, "AWS_ENDPOINT_URL"), "http://127.0.0.1:9711");
    EXPECT_EQ(env(main, "STOKER_SOCKET"), "/stoker/run/stoker.sock");
    EXPECT_EQ(env(main, "STOKER_JOB"), "uid-workload");
    EXPECT_EQ(env(main, "MASTER_ADDR"), "(absent)");
    EXPECT_EQ(
        string_at(pod.value(), {"metadata", "labels", "stoker.dev/training-job"}), "job-train");
    EXPECT_EQ(string_at(pod.value(), {"metadata", "annotations", "stoker.dev/container"}), "main");
    const std::vector<std::string> volumes = names(pod, "volumes");
    EXPECT_EQ(volumes.front(), "kube-api-access-x");
    EXPECT_EQ(std::ranges::count(volumes, "stoker-node-0"), 1);
    EXPECT_EQ(std::ranges::count(volumes, "stoker-shm"), 0);
}

TEST(ForeignPatch, GivesTheSidecarWhatBuildPodGives) {
    const Injected injected{pod_with()};
    JobManifest manifest;
    TrainingJob job = injected.job;
    job.spec.pod_template.automount_service_account_token = true;
    manifest.pod =
        build_pod({job, injected.datasets.datasets, injected.pool, injected.settings, 1, {}, {}});
    const Json expected = json_object({{"spec", Json(pod_template(manifest).value().at("spec"))}});
    const value ours = container(expected, "initContainers", "stoker-sidecar");
    const value theirs = container(injected.patched(), "initContainers", "stoker-sidecar");
    for (const auto& [field, written] : ours.as_object()) {
        if (field != "env") {
            EXPECT_EQ(theirs.at(field).serialize(), written.serialize());
        }
    }
    EXPECT_EQ(env(theirs, "STOKER_SIDECAR_CONFIG"), env(ours, "STOKER_SIDECAR_CONFIG"));
    EXPECT_EQ(env(theirs, "ATTEMPT_UID"), "uid-controller");
}

TEST(ForeignPatch, SecondPatchIsEmpty) {
    const Injected injected{pod_with()};
    const Json once = injected.patched();
    EXPECT_EQ(injected.patch_of(once).text(), "[]");
    const Injected again{once};
    ASSERT_TRUE(again.spec) << again.spec.error().message;
    EXPECT_EQ(again.spec->text(), injected.spec->text());
    EXPECT_EQ(again.patch_of(once).text(), "[]");
}

TEST(ForeignPatch, IsEmptyAfterAnotherWebhookAddedAContainer) {
    const Injected injected{pod_with()};
    const Json more = test::patched(
        injected.patched(),
        Json::parse(
            R"([{"op":"add","path":"/spec/initContainers/0","value":{"name":"istio-proxy"}}])")
            .value());
    EXPECT_EQ(injected.patch_of(more).text(), "[]");
}

TEST(ForeignPatch, SidecarFollowsAMeshProxyAndPrecedesInitContainers) {
    const Injected injected{pod_with(
        R"([{"op":"add","path":"/spec/initContainers","value":[{"name":"istio-proxy"},{"name":"prepare"}]}])")};
    EXPECT_EQ(
        names(injected.patched(), "initContainers"),
        (std::vector<std::string>{"istio-proxy", "stoker-sidecar", "stoker-s3", "prepare"}));
}

TEST(ForeignPatch, PatchesAPodWithoutVolumesVariablesOrAnnotations) {
    const Json bare = Json::parse(R"({"metadata":{"labels":{"stoker.dev/dataset":"imagenet"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}})")
                          .value();
    const Injected injected{bare};
    const value reader = container(injected.patched(), "containers", "c");
    EXPECT_EQ(env(reader, "STOKER_SOCKET"), "/stoker/run/stoker.sock");
    EXPECT_GT(reader.at("volumeMounts").size(), 0U);
}

TEST(ForeignPatch, KeepsTheProgramsOwnS3KeysAndGivesThemToTheEndpoint) {
    const Injected injected{pod_with(R"([
        {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_ACCESS_KEY_ID","value":"mine"}},
        {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_SECRET_ACCESS_KEY",
         "valueFrom":{"secretKeyRef":{"name":"s3","key":"secret"}}}}])")};
    const Json pod = injected.patched();
    const std::string secret = R"({"secretKeyRef":{"key":"secret","name":"s3"}})";
    EXPECT_EQ(env(container(pod, "containers", "main"), "AWS_ACCESS_KEY_ID"), "mine");
    EXPECT_EQ(env(container(pod, "containers", "main"), "AWS_SECRET_ACCESS_KEY"), secret);
    const value s3 = container(pod, "initContainers", "stoker-s3");
    EXPECT_EQ(env(s3, "STOKER_S3_ACCESS_KEY"), "mine");
    EXPECT_EQ(env(s3, "STOKER_S3_SECRET_KEY"), secret);
    EXPECT_EQ(env(s3, "AWS_ACCESS_KEY_ID"), "mine");
    const value sidecar = container(pod, "initContainers", "stoker-sidecar");
    EXPECT_EQ(env(sidecar, "AWS_SECRET_ACCESS_KEY"), secret);
    EXPECT_EQ(env(sidecar, "STOKER_S3_SECRET_KEY"), "(absent)");
}

constexpr const char* kEndpoint =
    R"([{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_ENDPOINT_URL","value":"http://minio:9000/"}}])";

TEST(ForeignPatch, ReplacesTheOriginsEndpoint) {
    Dataset dataset = make_dataset();
    dataset.spec.sources[0].endpoint = "http://minio:9000";
    const Injected injected{pod_with(kEndpoint), dataset};
    const Json pod = injected.patched();
    EXPECT_EQ(
        env(container(pod, "containers", "main"), "AWS_ENDPOINT_URL"), "http://127.0.0.1:9711");
    EXPECT_EQ(injected.patch_of(pod).text(), "[]");
    EXPECT_EQ(Injected(pod, dataset).patch_of(pod).text(), "[]");
    EXPECT_EQ(tell_bypass(injected.pod, injected.datasets.datasets), "");
}

TEST(ForeignPatch, LeavesAnotherServersEndpointAlone) {
    const Injected injected{pod_with(kEndpoint)};
    const Json pod = injected.patched();
    const value main = container(pod, "containers", "main");
    EXPECT_EQ(env(main, "AWS_ENDPOINT_URL"), "http://minio:9000/");
    EXPECT_EQ(env(main, "AWS_ACCESS_KEY_ID"), "(absent)");
    EXPECT_EQ(names(pod, "initContainers"), (std::vector<std::string>{"stoker-sidecar"}));
    EXPECT_NE(
        tell_bypass(injected.pod, injected.datasets.datasets).find("AWS_ENDPOINT_URL"),
        std::string::npos);
}

TEST(TellBypass, IsSilentWhereAccessS3WouldBeRefused) {
    Dataset shards = make_dataset();
    shards.spec.format = DatasetFormat::kTar;
    Dataset web = make_dataset();
    web.spec.sources[0].storage_uri = "https://data.example.com/imagenet";
    for (const Dataset& dataset : {shards, web}) {
        const Injected injected{pod_with(kEndpoint), dataset};
        EXPECT_EQ(tell_bypass(injected.pod, injected.datasets.datasets), "");
    }
}

TEST(ForeignPatch, HidesTheApiTokenFromTheSidecar) {
    const value sidecar =
        container(Injected{pod_with()}.patched(), "initContainers", "stoker-sidecar");
    const auto& mounts = sidecar.at("volumeMounts").as_array();
    EXPECT_TRUE(std::ranges::any_of(mounts, [](const value& mount) {
        return mount.at("mountPath").as_string() ==
                   "/var/run/secrets/kubernetes.io/serviceaccount" &&
               mount.at("name").as_string() == "stoker-no-token";
    }));
}

TEST(ForeignSpec, DescribesTheWorkload) {
    const Injected injected{pod_with()};
    EXPECT_EQ(injected.job.meta.name, "job-train");
    EXPECT_EQ(
        injected.job.spec.workload_ref, (WorkloadRef{"batch/v1", "Job", "train", "uid-workload"}));
    ASSERT_EQ(injected.job.meta.owners.size(), 1U);
    EXPECT_EQ(injected.job.meta.owners[0].uid, "uid-workload");
    EXPECT_FALSE(injected.job.meta.owners[0].controller);
    EXPECT_EQ(injected.job.spec.trainer.image, "train:1");
    EXPECT_EQ(injected.job.spec.trainer.node_count, 2);
    EXPECT_EQ(gpus_per_node(injected.job.spec.trainer), 8);
    EXPECT_TRUE(injected.job.spec.trainer.env.empty());
    ASSERT_EQ(injected.job.spec.datasets.size(), 1U);
    EXPECT_EQ(injected.job.spec.datasets[0].name, "imagenet");
    EXPECT_EQ(injected.job.spec.datasets[0].access, DatasetAccess::kS3);
}

TEST(ForeignSpec, TakesDatasetsAndCacheFromAnnotations) {
    const Injected injected{pod_with(R"([
        {"op":"add","path":"/metadata/annotations/stoker.dev~1datasets",
         "value":"[{\"name\":\"val\",\"datasetRef\":{\"name\":\"imagenet\"},\"access\":\"SDK\"}]"},
        {"op":"add","path":"/metadata/annotations/stoker.dev~1cache","value":"{\"weight\":5}"}])")};
    ASSERT_TRUE(injected.spec) << injected.spec.error().message;
    ASSERT_EQ(injected.job.spec.datasets.size(), 2U);
    EXPECT_EQ(injected.job.spec.datasets[1].name, "val");
    EXPECT_EQ(injected.job.spec.datasets[1].access, DatasetAccess::kSdk);
    EXPECT_EQ(injected.job.spec.cache.weight, 5);
}

TEST(ForeignSpec, NamesADatasetOfAnotherNamespace) {
    const Injected injected{pod_with(
        R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1dataset-namespace","value":"shared"}])")};
    EXPECT_EQ(injected.job.spec.datasets.at(0).dataset_ref_namespace, "shared");
}

TEST(ForeignSpec, PicksAccessSdkWhereS3DoesNotWork) {
    Dataset packed = make_dataset();
    packed.spec.format = DatasetFormat::kChunks;
    EXPECT_EQ(Injected(pod_with(), packed).job.spec.datasets.at(0).access, DatasetAccess::kSdk);
    Dataset directory = make_dataset();
    directory.spec.sources[0].volume = SourceVolume{"claim", std::nullopt};
    EXPECT_EQ(Injected(pod_with(), directory).job.spec.datasets.at(0).access, DatasetAccess::kSdk);
    Dataset web = make_dataset();
    web.spec.sources[0].storage_uri = "https://data.example.com/imagenet";
    EXPECT_EQ(Injected(pod_with(), web).job.spec.datasets.at(0).access, DatasetAccess::kSdk);
    const Injected half{pod_with(
        R"([{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_ACCESS_KEY_ID","value":"mine"}}])")};
    EXPECT_EQ(half.job.spec.datasets.at(0).access, DatasetAccess::kSdk);
}

TEST(ForeignSpec, RefusesPodsThatShareHostOrProcessNamespaces) {
    for (const std::string field : {"hostNetwork", "hostPID", "shareProcessNamespace"}) {
        const Injected injected{
            pod_with(R"([{"op":"add","path":"/spec/)" + field + R"(","value":true}])")};
        ASSERT_FALSE(injected.spec) << field;
        EXPECT_EQ(injected.spec.error().code, ErrorCode::kInvalidArgument);
    }
}

TEST(ForeignSpec, RefusesAnnotationsThatCannotBeRead) {
    for (const std::string annotation :
         {R"("stoker.dev~1datasets","value":"{}")",
          R"("stoker.dev~1datasets","value":"[")",
          R"("stoker.dev~1cache","value":"{\"weight\":5000}")",
          R"("stoker.dev~1access","value":"Files")",
          R"("stoker.dev~1container","value":"absent")"}) {
        const Injected injected{pod_with(
            R"([{"op":"add","path":"/metadata/annotations/)" + annotation.substr(1) + "}]")};
        EXPECT_FALSE(injected.spec) << annotation;
    }
}

struct Ranks {
    const char* patch;
    const char* rank;
    std::int64_t nodes;
};

TEST(ForeignSpec, TakesRankAndWorldFromTheControllersOwnVariables) {
    constexpr const char* kField = R"({"fieldRef":{"fieldPath":)";
    const std::vector<Ranks> cases = {
        // batch/v1 Job: the rank is the pod's completion index, the node count the Job's number of
        // pods.
        {"[]", R"("metadata.annotations['batch.kubernetes.io/job-completion-index']"}})", 2},
        // PyTorchJob: the rank and the node count come from the container's variables.
        {R"([{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"RANK","value":"3"}},
             {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"PET_NNODES","value":"4"}}])",
         "3",
         4},
        // TrainJob: the rank comes from torchrun's variable; a range of node counts is ignored.
        {R"([{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"PET_NODE_RANK",
              "valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['x']"}}}},
             {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"PET_NNODES","value":"1:8"}}])",
         R"("metadata.annotations['x']"}})",
         2}};
    for (const Ranks& expected : cases) {
        const Injected injected{pod_with(expected.patch)};
        const std::string rank =
            env(container(injected.patched(), "initContainers", "stoker-sidecar"),
                "JOB_COMPLETION_INDEX");
        const std::string text = expected.rank;
        EXPECT_EQ(rank, text.starts_with('"') ? kField + text : text);
        EXPECT_EQ(injected.job.spec.trainer.node_count, expected.nodes);
    }
}

TEST(ForeignSpec, TakesTheRankOfAKubeflowReplicaFromItsLabel) {
    const Injected injected{pod_with(R"([
        {"op":"add","path":"/metadata/annotations","value":{}},
        {"op":"add","path":"/metadata/labels/training.kubeflow.org~1replica-index","value":"1"}])")};
    EXPECT_NE(
        env(container(injected.patched(), "initContainers", "stoker-sidecar"),
            "JOB_COMPLETION_INDEX")
            .find("training.kubeflow.org/replica-index"),
        std::string::npos);
}

TEST(ForeignJobName, IsADnsLabelForEveryOwner) {
    EXPECT_EQ(
        foreign_job_name({"kubeflow.org/v1", "PyTorchJob", "resnet", "u"}), "pytorchjob-resnet");
    const std::string dotted = foreign_job_name({"apps/v1", "Deployment", "a.b", "u"});
    EXPECT_TRUE(dotted.starts_with("deployment-a-b-")) << dotted;
    const std::string longer = std::string(60, 'x');
    const std::string cut = foreign_job_name({"batch/v1", "Job", longer + "1", "u"});
    EXPECT_EQ(cut.size(), 52U);
    EXPECT_NE(cut, foreign_job_name({"batch/v1", "Job", longer + "2", "u"}));
    EXPECT_TRUE(validate(make_training_job(cut)).empty());
}

TEST(ReaderOf, PrefersStokersAnnotationThenKubectlsThenTheFirstContainer) {
    ForeignPod pod;
    pod.containers.resize(3);
    pod.containers[0].name = "log";
    pod.containers[1].name = "main";
    pod.containers[2].name = "train";
    EXPECT_EQ(reader_of(pod)->name, "log");
    pod.meta.annotations["kubectl.kubernetes.io/default-container"] = "main";
    EXPECT_EQ(reader_of(pod)->name, "main");
    pod.meta.annotations["stoker.dev/container"] = "train";
    EXPECT_EQ(reader_of(pod)->name, "train");
    pod.meta.annotations["stoker.dev/container"] = "absent";
    EXPECT_EQ(reader_of(pod), nullptr);
}

TEST(RefusalPatch, WritesTheReasonOnce) {
    const Json patched = test::patched(pod_with(), refusal_patch(pod_with(), "no such Dataset"));
    EXPECT_EQ(
        string_at(patched.value(), {"metadata", "annotations", "stoker.dev/not-injected"}),
        "no such Dataset");
    EXPECT_EQ(refusal_patch(patched, "no such Dataset").text(), "[]");
}

}  // namespace
}  // namespace stoker::control
