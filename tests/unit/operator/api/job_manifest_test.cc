#include "operator/api/job_manifest.h"

#include <cpprest/json.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using web::json::value;

JobManifest manifest() {
    JobManifest job;
    job.meta.ns = "team";
    job.meta.name = "resnet-a1";
    job.meta.owners = {{"stoker.dev/v1alpha1", "TrainingJob", "resnet", "u1", true}};
    job.node_count = 4;
    job.pod.trainer.name = "trainer";
    job.pod.trainer.image = "train:1";
    return job;
}

value pod_spec(const JobManifest& job) {
    return to_json(job).value().at("spec").at("template").at("spec");
}

TEST(JobManifest, IsAnIndexedJobWithoutRestartsOfSingleRanks) {
    const value spec = to_json(manifest()).value().at("spec");
    EXPECT_EQ(spec.at("completionMode").as_string(), "Indexed");
    EXPECT_EQ(spec.at("completions").as_integer(), 4);
    EXPECT_EQ(spec.at("parallelism").as_integer(), 4);
    EXPECT_EQ(spec.at("backoffLimit").as_integer(), 0);
    EXPECT_EQ(spec.at("podReplacementPolicy").as_string(), "Failed");
    EXPECT_EQ(pod_spec(manifest()).at("restartPolicy").as_string(), "Never");
    EXPECT_FALSE(spec.has_field("activeDeadlineSeconds"));
}

TEST(JobManifest, ChecksExitCodesOfTheTrainerOnly) {
    const value rules = to_json(manifest()).value().at("spec").at("podFailurePolicy").at("rules");
    ASSERT_EQ(rules.size(), 2U);
    EXPECT_EQ(rules.at(0).at("onPodConditions").at(0).at("type").as_string(), "DisruptionTarget");
    EXPECT_EQ(rules.at(1).at("onExitCodes").at("containerName").as_string(), "trainer");
    EXPECT_EQ(rules.at(0).at("action").as_string(), "FailJob");
    EXPECT_EQ(rules.at(1).at("action").as_string(), "FailJob");
}

TEST(JobManifest, IsOwnedByItsTrainingJob) {
    const value owner = to_json(manifest()).value().at("metadata").at("ownerReferences").at(0);
    EXPECT_EQ(owner.at("uid").as_string(), "u1");
    EXPECT_TRUE(owner.at("controller").as_bool());
    EXPECT_TRUE(owner.at("blockOwnerDeletion").as_bool());
}

TEST(JobManifest, SidecarHasTheFullRestrictedContext) {
    JobManifest job = manifest();
    ContainerManifest sidecar;
    sidecar.name = "stoker-sidecar";
    sidecar.restricted = true;
    sidecar.always_running = true;
    sidecar.startup_probe = StartupProbe{"/readyz", 9455};
    job.pod.init_containers = {sidecar};
    const value container = pod_spec(job).at("initContainers").at(0);
    EXPECT_EQ(container.at("restartPolicy").as_string(), "Always");
    const value context = container.at("securityContext");
    EXPECT_FALSE(context.at("allowPrivilegeEscalation").as_bool());
    EXPECT_FALSE(context.at("privileged").as_bool());
    EXPECT_TRUE(context.at("readOnlyRootFilesystem").as_bool());
    EXPECT_TRUE(context.at("runAsNonRoot").as_bool());
    EXPECT_EQ(context.at("runAsUser").as_integer(), 65532);
    EXPECT_EQ(context.at("capabilities").at("drop").at(0).as_string(), "ALL");
    EXPECT_EQ(context.at("seccompProfile").at("type").as_string(), "RuntimeDefault");
    EXPECT_EQ(container.at("startupProbe").at("httpGet").at("port").as_integer(), 9455);
}

TEST(JobManifest, ProbeIsACommandOrAGet) {
    JobManifest job = manifest();
    ContainerManifest endpoint;
    endpoint.startup_probe = StartupProbe{};
    endpoint.startup_probe->command = {"bash", "-c", "true"};
    job.pod.init_containers = {endpoint};
    const value probe = pod_spec(job).at("initContainers").at(0).at("startupProbe");
    EXPECT_EQ(probe.at("exec").at("command").size(), 3U);
    EXPECT_FALSE(probe.has_field("httpGet"));
    job.pod.init_containers[0].startup_probe = StartupProbe{"/readyz", 9455};
    EXPECT_FALSE(pod_spec(job).at("initContainers").at(0).at("startupProbe").has_field("exec"));
}

TEST(JobManifest, AddsPreferredNodesToTheUsersAffinity) {
    JobManifest job = manifest();
    job.pod.preferred_nodes = {{"n1", 100}, {"n2", 7}};
    job.pod.affinity =
        Json::parse(
            R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
            "requiredDuringSchedulingIgnoredDuringExecution": {"a": 1}}, "podAffinity": {"b": 2}})")
            .value();
    const value affinity = pod_spec(job).at("affinity");
    const value preferred =
        affinity.at("nodeAffinity").at("preferredDuringSchedulingIgnoredDuringExecution");
    ASSERT_EQ(preferred.size(), 3U);
    EXPECT_EQ(
        preferred.at(0).at("preference").at("matchFields").at(0).at("values").at(0).as_string(),
        "n1");
    EXPECT_EQ(preferred.at(1).at("weight").as_integer(), 7);
    EXPECT_EQ(preferred.at(2).at("weight").as_integer(), 1);
    EXPECT_TRUE(
        affinity.at("nodeAffinity").has_field("requiredDuringSchedulingIgnoredDuringExecution"));
    EXPECT_TRUE(affinity.has_field("podAffinity"));
}

TEST(JobManifest, OmitsEmptyAffinity) {
    EXPECT_FALSE(pod_spec(manifest()).has_field("affinity"));
}

TEST(JobManifest, KeepsTheUsersSecurityContext) {
    JobManifest job = manifest();
    job.pod.security_context =
        Json::parse(R"({"runAsUser": 1000, "supplementalGroups": [5]})").value();
    const value context = pod_spec(job).at("securityContext");
    EXPECT_EQ(context.at("runAsUser").as_integer(), 1000);
    EXPECT_EQ(context.at("supplementalGroups").size(), 1U);
}

TEST(JobManifest, WritesEveryKindOfVolume) {
    JobManifest job = manifest();
    job.pod.volumes = {
        {"view", CsiVolume{"csi.stoker.dev", true, {{"view", "data"}}}},
        {"must", HostPathVolume{"/nfs"}},
        {"run", EmptyDirVolume{}},
        {"shm", EmptyDirVolume{true, "8Gi"}},
        {"token", TokenVolume{"stoker.dev", 3600}},
        {"secret", SecretVolume{"s3"}},
        {"claim", ClaimVolume{"data", true}}};
    job.pod.user_volumes = {Json::parse(R"({"name": "mine", "emptyDir": {}})").value()};
    const value volumes = pod_spec(job).at("volumes");
    ASSERT_EQ(volumes.size(), 8U);
    EXPECT_EQ(volumes.at(0).at("csi").at("driver").as_string(), "csi.stoker.dev");
    EXPECT_TRUE(volumes.at(0).at("csi").at("readOnly").as_bool());
    EXPECT_EQ(volumes.at(0).at("csi").at("volumeAttributes").at("view").as_string(), "data");
    EXPECT_EQ(volumes.at(1).at("hostPath").at("type").as_string(), "Directory");
    EXPECT_EQ(volumes.at(2).at("emptyDir").size(), 0U);
    EXPECT_EQ(volumes.at(3).at("emptyDir").at("medium").as_string(), "Memory");
    const value token = volumes.at(4).at("projected").at("sources").at(0).at("serviceAccountToken");
    EXPECT_EQ(token.at("audience").as_string(), "stoker.dev");
    EXPECT_EQ(volumes.at(5).at("secret").at("secretName").as_string(), "s3");
    EXPECT_TRUE(volumes.at(6).at("persistentVolumeClaim").at("readOnly").as_bool());
    EXPECT_EQ(volumes.at(7).at("name").as_string(), "mine");
}

TEST(Digest, IsEqualOnlyForEqualManifests) {
    JobManifest other = manifest();
    EXPECT_EQ(digest(manifest()), digest(other));
    EXPECT_EQ(digest(other).size(), 16U);
    other.pod.trainer.image = "train:2";
    EXPECT_NE(digest(manifest()), digest(other));
}

TEST(ServiceManifest, IsHeadlessAndPublishesUnreadyPods) {
    ServiceManifest service;
    service.meta.name = "resnet-ranks";
    service.selector = {{"stoker.dev/training-job", "resnet"}};
    const value spec = to_json(service).value().at("spec");
    EXPECT_EQ(spec.at("clusterIP").as_string(), "None");
    EXPECT_TRUE(spec.at("publishNotReadyAddresses").as_bool());
    EXPECT_EQ(spec.at("selector").at("stoker.dev/training-job").as_string(), "resnet");
}

TEST(JobManifest, MountsOneKeyOfACertificateBundle) {
    JobManifest job = manifest();
    job.pod.volumes = {
        {"a", BundleVolume{CaBundle{BundleKind::kConfigMap, "ca", "root.pem"}, false}},
        {"b", BundleVolume{CaBundle{BundleKind::kSecret, "ca", "tls.crt"}, true}}};
    const value volumes = pod_spec(job).at("volumes");
    const value map = volumes.at(0).at("configMap");
    EXPECT_EQ(map.at("name").as_string(), "ca");
    EXPECT_EQ(map.at("items").at(0).at("key").as_string(), "root.pem");
    EXPECT_FALSE(map.has_field("optional"));
    const value secret = volumes.at(1).at("secret");
    EXPECT_EQ(secret.at("secretName").as_string(), "ca");
    EXPECT_EQ(secret.at("items").at(0).at("path").as_string(), "tls.crt");
    EXPECT_TRUE(secret.at("optional").as_bool());
}

TEST(Patches, ChangeOneField) {
    EXPECT_EQ(deadline_patch(60).text(), R"({"spec":{"activeDeadlineSeconds":60}})");
    EXPECT_EQ(annotation_patch("a/b", "c").text(), R"({"metadata":{"annotations":{"a/b":"c"}}})");
    EXPECT_EQ(annotation_patch("a/b", "").text(), R"({"metadata":{"annotations":{"a/b":null}}})");
}

}  // namespace
}  // namespace stoker::control
