#include <algorithm>

#include <gtest/gtest.h>

#include "operator/core/workload/build_pod.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

PodManifest pod_of(const TrainingJobView& view) {
    return build_pod({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
}

std::string config_of(const ContainerManifest& sidecar) {
    const auto found = std::ranges::find(sidecar.env, "STOKER_SIDECAR_CONFIG", &EnvVar::name);
    return found == sidecar.env.end() ? "" : found->value;
}

TEST(BuildPod, OpensThePeerPortOfASidecarThatLeads) {
    const ContainerManifest sidecar = pod_of(make_view()).init_containers[0];
    EXPECT_EQ(sidecar.peer_port, 7331);
    const std::string config = config_of(sidecar);
    EXPECT_NE(config.find(R"("peers":{"listen":"[::]:7331"})"), std::string::npos) << config;
    EXPECT_NE(config.find(R"("peers":true)"), std::string::npos) << config;
}

TEST(BuildPod, OpensNoPeerPortWithoutPeers) {
    const auto has_peers = [](const TrainingJobView& view) {
        const ContainerManifest sidecar = pod_of(view).init_containers[0];
        const std::string config = config_of(sidecar);
        return sidecar.peer_port || config.find("peers") != std::string::npos;
    };
    TrainingJobView guest = make_view();
    guest.datasets.datasets[0].ns = "data";
    EXPECT_FALSE(has_peers(guest));
    TrainingJobView off = make_view();
    off.datasets.datasets[0].peers = false;
    EXPECT_FALSE(has_peers(off));
    TrainingJobView unsigned_view = make_view();
    unsigned_view.settings.sidecar_peer_port = 0;
    EXPECT_FALSE(has_peers(unsigned_view));
}

}  // namespace
}  // namespace stoker::control
