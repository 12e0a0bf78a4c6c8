#include "operator/core/workload/trainer_credentials.h"

#include <algorithm>

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

TEST(TrainerCredentials, PassesAWebServersSecretToItsDatasetOnly) {
    TrainingJobView view = make_view();
    DatasetSource& source = view.datasets.datasets[0].source;
    source = {};
    source.storage_uri = "https://h/a";
    source.index = "list";
    source.secret_ref = "server";
    const PodManifest pod =
        build_pod({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
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
