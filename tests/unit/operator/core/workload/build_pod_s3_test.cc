#include <algorithm>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "operator/core/workload/build_pod.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

constexpr std::string_view kUid = R"({"fieldRef":{"fieldPath":"metadata.uid"}})";

// A job that reads dataset train of the team's own bucket by S3.
TrainingJobView make_s3_view() {
    TrainingJobView view = make_view();
    ResolvedDataset& dataset = view.datasets.datasets[0];
    dataset.access = DatasetAccess::kS3;
    dataset.source = {"s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    view.settings.s3_port = 9800;
    return view;
}

PodManifest pod_of(const TrainingJobView& view) {
    return build_pod({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
}

// nullopt: the container has no such variable. A second one of the same name is an error.
std::optional<std::string> env(const ContainerManifest& container, const std::string& name) {
    EXPECT_LE(std::ranges::count(container.env, name, &EnvVar::name), 1) << name;
    const auto found = std::ranges::find(container.env, name, &EnvVar::name);
    if (found == container.env.end()) {
        return std::nullopt;
    }
    return found->value_from == Json() ? found->value : found->value_from.text();
}

bool has(const std::optional<std::string>& text, const std::string& part) {
    return text && text->find(part) != std::string::npos;
}

std::set<std::string> writable_paths(const ContainerManifest& container) {
    std::set<std::string> paths;
    for (const MountManifest& mount : container.mounts) {
        if (!mount.read_only) {
            paths.insert(mount.path);
        }
    }
    return paths;
}

bool mounts(const ContainerManifest& container, const std::string& path) {
    return std::ranges::count(container.mounts, path, &MountManifest::path) == 1;
}

TEST(BuildPodS3, AddsOneRestrictedContainerAfterTheSidecar) {
    TrainingJobView view = make_s3_view();
    view.settings.s3_resources = {{{"memory", "256Mi"}}, {{"cpu", "50m"}}};
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].name = "val";
    const PodManifest pod = pod_of(view);
    ASSERT_EQ(pod.init_containers.size(), 2U);
    EXPECT_EQ(pod.init_containers[0].name, "stoker-sidecar");
    const ContainerManifest& endpoint = pod.init_containers[1];
    EXPECT_EQ(endpoint.name, "stoker-s3");
    EXPECT_EQ(endpoint.image, pod.init_containers[0].image);
    EXPECT_EQ(endpoint.command, std::vector<std::string>{"stoker-s3"});
    EXPECT_EQ(endpoint.resources, view.settings.s3_resources);
    EXPECT_TRUE(endpoint.restricted);
    EXPECT_TRUE(endpoint.always_running);
    ASSERT_TRUE(endpoint.startup_probe);
    EXPECT_EQ(
        endpoint.startup_probe->command,
        (std::vector<std::string>{"bash", "-c", ": </dev/tcp/127.0.0.1/9800"}));
}

TEST(BuildPodS3, BothSidecarsGetTheSameConfiguration) {
    const PodManifest pod = pod_of(make_s3_view());
    const auto config = env(pod.init_containers.at(1), "STOKER_SIDECAR_CONFIG");
    EXPECT_EQ(config, env(pod.init_containers.at(0), "STOKER_SIDECAR_CONFIG"));
    EXPECT_TRUE(has(config, R"("s3Listen":"127.0.0.1:9800")")) << config.value_or("");
    EXPECT_TRUE(has(config, R"("endpoint":"http://s3:9000")")) << config.value_or("");
    EXPECT_TRUE(env(pod.init_containers.at(1), "POD_IP")) << "the configuration needs it";
}

TEST(BuildPodS3, EndpointMountsSamplesReadOnlyAndTheOriginsKeys) {
    TrainingJobView view = make_s3_view();
    view.job.spec.pod_template.automount_service_account_token = true;
    view.datasets.datasets[0].source.ca_bundle = CaBundle{BundleKind::kConfigMap, "ca", "root.pem"};
    const ContainerManifest endpoint = pod_of(view).init_containers.at(1);
    EXPECT_EQ(writable_paths(endpoint), std::set<std::string>{});
    for (const std::string path :
         {"/stoker/run",
          "/stoker/node/train/data",
          "/stoker/credentials/train",
          "/stoker/ca/train",
          "/var/run/secrets/kubernetes.io/serviceaccount"}) {
        EXPECT_TRUE(mounts(endpoint, path)) << path;
    }
    EXPECT_FALSE(mounts(endpoint, "/stoker/node/train"));
    EXPECT_FALSE(mounts(endpoint, "/stoker/token"));
}

TEST(BuildPodS3, TrainerHoldsOnlyTheKeyOfThePodsEndpoint) {
    const PodManifest pod = pod_of(make_s3_view());
    EXPECT_EQ(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "stoker");
    EXPECT_EQ(env(pod.trainer, "AWS_SECRET_ACCESS_KEY"), kUid);
    EXPECT_EQ(env(pod.trainer, "AWS_SESSION_TOKEN"), std::nullopt);
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL"), "http://127.0.0.1:9800");
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL_S3"), "http://127.0.0.1:9800");
    EXPECT_EQ(env(pod.trainer, "AWS_REGION"), "eu-west-1");
    EXPECT_EQ(env(pod.trainer, "AWS_DEFAULT_REGION"), "eu-west-1");
    const ContainerManifest& endpoint = pod.init_containers.at(1);
    EXPECT_EQ(env(endpoint, "STOKER_S3_ACCESS_KEY"), env(pod.trainer, "AWS_ACCESS_KEY_ID"));
    EXPECT_EQ(env(endpoint, "STOKER_S3_SECRET_KEY"), env(pod.trainer, "AWS_SECRET_ACCESS_KEY"));
}

TEST(BuildPodS3, RegionDefaultsToTheSidecars) {
    TrainingJobView view = make_s3_view();
    view.datasets.datasets[0].source.region = "";
    EXPECT_EQ(env(pod_of(view).trainer, "AWS_REGION"), "us-east-1");
}

// The trainer's only key is that of the pod's endpoint; the origin would refuse it.
TEST(BuildPodS3, LibraryFallsBackToThePodsEndpoint) {
    TrainingJobView view = make_s3_view();
    ResolvedDataset& train = view.datasets.datasets[0];
    train.source.ca_bundle = CaBundle{BundleKind::kConfigMap, "ca", "root.pem"};
    view.datasets.datasets.push_back(train);
    ResolvedDataset& val = view.datasets.datasets[1];
    val.name = "val";
    val.access = DatasetAccess::kSdk;
    val.source = {"file:///v", "", "", {}, {}, SourceVolume{"claim", {}}};
    const auto datasets = env(pod_of(view).trainer, "STOKER_DATASETS");
    EXPECT_EQ(
        datasets,
        R"({"train":{"contract":"exact","directory":"/stoker/node/train/data",)"
        R"("endpoint":"http://127.0.0.1:9800","pathStyle":true,"region":"eu-west-1",)"
        R"("uri":"s3://imagenet/train"},"val":{"contract":"exact",)"
        R"("directory":"/stoker/node/val/data","uri":"file:///stoker/origin/val/v"}})");
}

TEST(BuildPodS3, UsersOwnVariablesWin) {
    TrainingJobView view = make_s3_view();
    view.job.spec.trainer.env = {
        {"AWS_ENDPOINT_URL", "http://mine", {}},
        {"AWS_ACCESS_KEY_ID", "mine", {}},
        {"AWS_SECRET_ACCESS_KEY", "secret", {}}};
    const PodManifest pod = pod_of(view);
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL"), "http://mine");
    EXPECT_EQ(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "mine");
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL_S3"), "http://127.0.0.1:9800");
    EXPECT_TRUE(has(env(pod.trainer, "STOKER_DATASETS"), R"("endpoint":"http://s3:9000")"))
        << "the library signs with the user's key, which the pod's endpoint refuses";
    EXPECT_EQ(env(pod.init_containers.at(1), "STOKER_S3_ACCESS_KEY"), "stoker");
}

TEST(BuildPodS3, WithoutACacheTheProgramReadsTheOrigin) {
    TrainingJobView view = make_s3_view();
    view.pool = ResolvedPool{};
    const PodManifest pod = pod_of(view);
    EXPECT_TRUE(pod.init_containers.empty());
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL_S3"), "http://s3:9000");
    EXPECT_EQ(env(pod.trainer, "AWS_REGION"), "eu-west-1");
    EXPECT_TRUE(has(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "secretKeyRef"));
    EXPECT_TRUE(has(env(pod.trainer, "AWS_SESSION_TOKEN"), "secretKeyRef"));
    view.datasets.datasets[0].source.endpoint = "";
    EXPECT_EQ(env(pod_of(view).trainer, "AWS_ENDPOINT_URL_S3"), std::nullopt) << "AWS's own";
}

TEST(BuildPodS3, AccessSdkChangesNothing) {
    TrainingJobView view = make_s3_view();
    view.datasets.datasets[0].access = DatasetAccess::kSdk;
    const PodManifest pod = pod_of(view);
    EXPECT_EQ(pod.init_containers.size(), 1U);
    EXPECT_FALSE(has(env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG"), "s3Listen"));
    EXPECT_EQ(env(pod.trainer, "AWS_ENDPOINT_URL"), std::nullopt);
    EXPECT_EQ(env(pod.trainer, "AWS_REGION"), std::nullopt);
    EXPECT_TRUE(has(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "secretKeyRef"));
}

TEST(BuildPodS3, GuestsEndpointCannotReachTheLeader) {
    TrainingJobView view = make_s3_view();
    view.datasets.datasets[0].ns = "data";
    const ContainerManifest endpoint = pod_of(view).init_containers.at(1);
    EXPECT_TRUE(mounts(endpoint, "/stoker/node/train/data"));
    EXPECT_FALSE(mounts(endpoint, "/stoker/node/train/guests"))
        << "only the sidecar asks the leader";
    EXPECT_TRUE(mounts(endpoint, "/stoker/credentials/train"));
}

}  // namespace
}  // namespace stoker::control
