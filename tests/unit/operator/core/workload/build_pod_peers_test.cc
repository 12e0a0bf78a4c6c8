#include <algorithm>
#include <string>
#include <string_view>

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

// The sidecar's listingAgeMax; empty: not set.
std::string listing_age(const TrainingJobView& view, std::int64_t attempt = 1) {
    const PodManifest pod =
        build_pod({view.job, view.datasets.datasets, view.pool, view.settings, attempt, {}, {}});
    const std::string config = config_of(pod.init_containers[0]);
    constexpr std::string_view kKey = R"("listingAgeMax":")";
    const std::size_t at = config.find(kKey);
    if (at == std::string::npos) {
        return "";
    }
    const std::size_t begin = at + kKey.size();
    return config.substr(begin, config.find('"', begin) - begin);
}

TEST(BuildPod, TheSidecarGetsTheLimitOfAListingsAge) {
    TrainingJobView view = make_view();
    EXPECT_EQ(listing_age(view), "");
    view.datasets.datasets[0].listing_age_seconds_max = 0;
    EXPECT_EQ(listing_age(view), "0s");
    view.datasets.datasets[0].listing_age_seconds_max = 3600;
    EXPECT_EQ(listing_age(view), "3600s");
    EXPECT_EQ(listing_age(view, 2), "3600s") << "a node was lost";
    view.job.status.restarts = 1;
    EXPECT_EQ(listing_age(view, 3), "0s") << "an attempt has failed";
}

TEST(BuildPod, RanksThatCannotTakeAListingFromEachOtherUseNoOlderOne) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].listing_age_seconds_max = 3600;
    view.datasets.datasets[0].peers = false;
    EXPECT_EQ(listing_age(view), "0s");
    view.job.spec.trainer.node_count = 1;
    EXPECT_EQ(listing_age(view), "3600s");
    view.datasets.datasets[0].ns = "data";
    EXPECT_EQ(listing_age(view), "") << "a guest never lists";
}

}  // namespace
}  // namespace stoker::control
