// Credentials that the origin refuses. A leader with such credentials releases the lock; a follower
// with such credentials gets none of the leader's samples.
#include <gmock/gmock.h>

#include "sidecar/service/monitor.h"
#include "sidecar/service/sidecar_metrics.h"
#include "tests/integration/sidecar_pair_fixture.h"

namespace stoker::test {
namespace {

const Error kRefusal{ErrorCode::kForbidden, "403 AccessDenied"};

class SidecarPermission : public SidecarPairTest {
protected:
    SidecarPermission() { second_config.job.training_job_uid = "job-2"; }

    [[nodiscard]] sidecar::Role first_role() const {
        return running->ask([](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->role(); });
    }

    [[nodiscard]] std::optional<sidecar::AccessProof::State> second_permission() const {
        return second->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->permission(); });
    }

    [[nodiscard]] Result<local::Welcome> hello_second() const {
        SampleClient client{second_config.socket_path};
        return client.hello("train", 9);
    }

    [[nodiscard]] control::DatasetReport first_report() const {
        return running->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar).datasets[0]; });
    }

    // A metric of the first sidecar; `told` remembers the values reported earlier.
    [[nodiscard]] std::string first_metrics(
        metrics::Registry& registry, sidecar::SidecarMetrics& told) const {
        return running->ask([&](sidecar::Sidecar& sidecar) {
            told.update(*sidecar.nodes()[0]);
            return registry.expose();
        });
    }

    void refuse_second() {
        second->ask([this](sidecar::Sidecar&) {
            second_origin->fail_with(kRefusal);
            return true;
        });
    }
};

TEST_F(SidecarPermission, ARefusedFollowerGetsNothingUntilItIsAllowed) {
    start_both();
    refuse_second();
    const auto refused = hello_second();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
    EXPECT_NE(refused.error().message.find("403"), std::string::npos);
    EXPECT_EQ(second_permission(), sidecar::AccessProof::State::kRefused);
    EXPECT_EQ(origin->fetches(), 0U) << "fetched with the leader's key";
    second_origin->fail_with(std::nullopt);
    EXPECT_TRUE(eventually([&] { return hello_second().has_value(); }));
}

TEST_F(SidecarPermission, ALeaderWithARevokedKeyReleasesTheLead) {
    start_both();
    SampleClient client = connect_second(9);
    SampleClient own = connect(1);
    read_all(client, {1, 2, 3}, 0);
    const control::DatasetReport before = first_report();
    EXPECT_EQ(before.origin_requests, 3U);
    origin->fail_with(kRefusal);
    ASSERT_TRUE(eventually([&] {
        const auto fetched = client.fetch({50, 51, 52, 53, 54, 55, 56, 57, 58, 59});
        return fetched && second_role() == sidecar::Role::kLeading;
    }));
    read_all(client, {60, 61, 62}, 0);
    EXPECT_TRUE(client.read(1)->has_value()) << "what was stored stays";
    EXPECT_EQ(first_role(), sidecar::Role::kFollowing);
    EXPECT_FALSE(first_report().leader);
    EXPECT_GT(first_report().origin_requests, before.origin_requests) << "a total does not fall";
    EXPECT_EQ(first_report().origin_bytes_read, before.origin_bytes_read);
}

TEST_F(SidecarPermission, ALeadersGaugesEndWithItsLead) {
    start_both();
    metrics::Registry registry;
    sidecar::SidecarMetrics metrics{registry};
    SampleClient client = connect_second(9);
    SampleClient own = connect(1);
    read_all(client, {1, 2, 3}, 0);
    const std::vector<std::string> gauges = {
        "admitting{", "dataset_samples{", "granted_bytes{", "stored_bytes{", "peers{"};
    const std::string leading = first_metrics(registry, metrics);
    for (const std::string& gauge : gauges) {
        EXPECT_THAT(leading, testing::HasSubstr("stoker_sidecar_" + gauge));
    }
    origin->fail_with(kRefusal);
    ASSERT_TRUE(eventually([&] {
        const auto fetched = client.fetch({50, 51, 52, 53, 54, 55, 56, 57, 58, 59});
        return fetched && second_role() == sidecar::Role::kLeading;
    }));
    const std::string following = first_metrics(registry, metrics);
    EXPECT_THAT(following, testing::HasSubstr("stoker_sidecar_leading{dataset=\"train\"} 0"));
    for (const std::string& gauge : gauges) {
        EXPECT_THAT(following, testing::Not(testing::HasSubstr("stoker_sidecar_" + gauge)));
    }
    EXPECT_THAT(following, testing::HasSubstr("stoker_sidecar_fetched_samples_total{"));
}

TEST_F(SidecarPermission, OneRefusedRequestForManySamplesKeepsTheLead) {
    start_both();
    origin->share_requests();
    SampleClient client = connect(1);
    origin->fail_with(kRefusal);
    const auto fetched = client.fetch({50, 51, 52, 53, 54, 55, 56, 57, 58, 59});
    EXPECT_EQ(first_report().origin_requests, 1U);
    EXPECT_EQ(first_role(), sidecar::Role::kLeading);
}

}  // namespace
}  // namespace stoker::test
