#include "operator/core/workload/trainer_credentials.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/workload/build_pod.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// The variable's value, or the source of it; empty: there is none.
std::string env(const ContainerManifest& container, const std::string& name) {
    const auto found = std::ranges::find(container.env, name, &EnvVar::name);
    if (found == container.env.end()) {
        return "";
    }
    return found->value_from == Json() ? found->value : found->value_from.text();
}

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A dataset on a web server that asks for credentials.
ResolvedDataset web_dataset(const std::string& name, const std::string& ns) {
    ResolvedDataset dataset = make_view().datasets.datasets[0];
    dataset.name = name;
    dataset.ns = ns;
    dataset.uid = "uid-" + name;
    dataset.source = {};
    dataset.source.storage_uri = "https://" + name + "/a";
    dataset.source.secret_ref = "secret-" + name;
    return dataset;
}

PodManifest pod_with(const std::vector<ResolvedDataset>& datasets) {
    const TrainingJobView view = make_view();
    return build_pod({view.job, datasets, view.pool, view.settings, 1, {}, {}});
}

std::set<std::string> mounted_secrets(const PodManifest& pod) {
    std::set<std::string> result;
    for (const VolumeManifest& volume : pod.volumes) {
        if (const auto* secret = std::get_if<SecretVolume>(&volume.source)) {
            result.insert(secret->secret);
        }
    }
    return result;
}

// Mount paths of the sidecar.
std::vector<std::string> sidecar_paths(const PodManifest& pod) {
    std::vector<std::string> result;
    for (const MountManifest& mount : pod.init_containers[0].mounts) {
        result.push_back(mount.path);
    }
    return result;
}

TEST(TrainerCredentials, AnotherNamespacesServerDoesNotGetTheJobsToken) {
    const PodManifest pod = pod_with({web_dataset("own", "team"), web_dataset("evil", "other")});
    EXPECT_THAT(env(pod.trainer, "STOKER_HTTP_TOKEN"), HasSubstr("secret-own"));
    const std::string trainer = env(pod.trainer, "STOKER_DATASETS");
    const auto evil = trainer.find(R"("evil":)");
    const auto own = trainer.find(R"("own":)");
    ASSERT_LT(evil, own) << trainer;
    EXPECT_GT(trainer.find("authenticate"), own) << trainer;
    EXPECT_THAT(mounted_secrets(pod), ElementsAre("secret-own"));
    EXPECT_THAT(sidecar_paths(pod), Contains("/stoker/credentials/own"));
    EXPECT_THAT(sidecar_paths(pod), Not(Contains("/stoker/credentials/evil")));
}

// The Secret's name is chosen by the other namespace.
TEST(TrainerCredentials, AnotherNamespacesServerGetsNoSecretOfThisOne) {
    const PodManifest pod = pod_with({web_dataset("evil", "other")});
    for (const char* name : {"STOKER_HTTP_TOKEN", "STOKER_HTTP_USERNAME", "STOKER_HTTP_PASSWORD"}) {
        EXPECT_EQ(env(pod.trainer, name), "");
    }
    EXPECT_THAT(env(pod.trainer, "STOKER_DATASETS"), Not(HasSubstr("authenticate")));
    EXPECT_THAT(mounted_secrets(pod), IsEmpty());
    EXPECT_THAT(sidecar_paths(pod), Not(Contains("/stoker/credentials/evil")));
    EXPECT_THAT(
        env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG"),
        HasSubstr(R"("credentialsDirectory":"/stoker/credentials/evil")"))
        << "so the sidecar knows that it lacks a key";
}

TEST(TrainerCredentials, PassesAWebServersSecretToItsDatasetOnly) {
    ResolvedDataset dataset = web_dataset("train", "team");
    dataset.source.index = "list";
    dataset.source.secret_ref = "server";
    const PodManifest pod = pod_with({dataset});
    EXPECT_EQ(
        env(pod.trainer, "STOKER_HTTP_TOKEN"),
        R"({"secretKeyRef":{"key":"token","name":"server","optional":true}})");
    EXPECT_NE(env(pod.trainer, "STOKER_HTTP_PASSWORD").find("secretKeyRef"), std::string::npos);
    EXPECT_NE(env(pod.trainer, "STOKER_HTTP_USERNAME").find("secretKeyRef"), std::string::npos);
    EXPECT_EQ(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "");
    const std::string trainer = env(pod.trainer, "STOKER_DATASETS");
    EXPECT_NE(trainer.find(R"("authenticate":true)"), std::string::npos) << trainer;
    EXPECT_NE(trainer.find(R"("index":"list")"), std::string::npos) << trainer;
    const std::string sidecar = env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG");
    EXPECT_NE(
        sidecar.find(R"("credentialsDirectory":"/stoker/credentials/train")"), std::string::npos);
    EXPECT_NE(sidecar.find(R"("index":"list")"), std::string::npos);
    EXPECT_EQ(sidecar.find("authenticate"), std::string::npos);
}

}  // namespace
}  // namespace stoker::control
