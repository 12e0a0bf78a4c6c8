// What a sidecar tells about itself: /metrics, /status, probes, and the report to the operator.
#include <gmock/gmock.h>

#include "sidecar/service/monitor.h"
#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {
namespace {

using testing::HasSubstr;

class SidecarMonitor : public SidecarTest {
protected:
    // What the HTTP door would answer now.
    [[nodiscard]] http::ServerResponse get(const std::string& target) const {
        return running->ask([&target, this](sidecar::Sidecar& sidecar) {
            metrics::Registry registry;
            const sidecar::Monitor monitor{sidecar, running->loop(), registry};
            http::ServerRequest request;
            request.method = "GET";
            request.target = target;
            return monitor.answer(request);
        });
    }

    [[nodiscard]] sidecar::LinkReport report() const {
        return running->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar); });
    }

    // One epoch of rank 0 of 2 under the windowed contract, read to its end.
    void draw_epoch(SampleClient& client, std::uint64_t epoch) const {
        local::Begin begin;
        begin.epoch = epoch;
        begin.world_size = 2;
        begin.batch = 16;
        begin.contract = "windowed";
        begin.job = "job";
        client.send(begin);
        auto answer = client.receive();
        ASSERT_TRUE(answer && std::holds_alternative<local::Begun>(answer->message));
        for (bool ended = false; !ended;) {
            client.send(local::Draw{epoch, 16});
            answer = client.receive();
            ASSERT_TRUE(answer && std::holds_alternative<local::Drawn>(answer->message));
            const auto& drawn = std::get<local::Drawn>(answer->message);
            ended = drawn.ended;
            read_all(client, drawn.served, epoch);
        }
        client.send(local::AskEpoch{epoch});
        ASSERT_TRUE(client.receive().has_value());  // the frames before it were looked at
    }
};

TEST_F(SidecarMonitor, CountsWhatWasReadAndStored) {
    start();
    SampleClient client = connect(1);
    read_all(client, all(), 1);
    const auto metrics = get("/metrics");
    EXPECT_EQ(metrics.status, 200);
    EXPECT_THAT(
        metrics.body, HasSubstr("stoker_sidecar_fetched_samples_total{dataset=\"train\"} 200"));
    EXPECT_THAT(
        metrics.body,
        HasSubstr("stoker_sidecar_stored_samples{dataset=\"train\",class=\"resident\"} 200"));
    EXPECT_THAT(metrics.body, HasSubstr("stoker_sidecar_leading{dataset=\"train\"} 1"));
}

TEST_F(SidecarMonitor, SaysHowItStandsAsJson) {
    start();
    SampleClient client = connect(1);
    const auto status = get("/status?pretty");
    EXPECT_EQ(status.content_type, "application/json");
    EXPECT_THAT(status.body, HasSubstr("\"role\":\"leading\""));
    EXPECT_THAT(status.body, HasSubstr("\"state\":\"serving\""));
    EXPECT_THAT(status.body, HasSubstr("\"sessions\":1"));
}

TEST_F(SidecarMonitor, IsReadyWhileItStillLists) {
    origin_error = Error{ErrorCode::kUnavailable, "503 from the bucket"};
    start();
    EXPECT_EQ(get("/readyz").status, 200);
    EXPECT_EQ(get("/healthz").status, 200);
    EXPECT_EQ(get("/nonsense").status, 404);
    ASSERT_TRUE(eventually(
        [&] { return report().datasets.at(0).stage == sidecar::ManifestStage::kFailed; }));
    EXPECT_EQ(report().datasets[0].error, "503 from the bucket");
}

TEST_F(SidecarMonitor, ReportsTheNodeAndTheTrainersOfThePod) {
    config.datasets[0].uid = "uid-7";
    start();
    SampleClient client = connect(1);
    ASSERT_TRUE(client.plan(4, all()).has_value());
    read_all(client, {0, 1, 2}, 4);
    local::Report told;
    told.epoch = 4;
    told.steps = 2;
    told.samples = 10;
    told.bytes = 1000;
    told.hit_samples = 7;
    told.origin_samples = 5;
    told.wait_ns = 30;
    told.compute_ns = 70;
    client.send_bytes(local::encode_frame(told, 0));
    client.send_bytes(local::encode_frame(told, 0));
    ASSERT_TRUE(client.fetch({3}).has_value());  // the frames before it were looked at
    ASSERT_TRUE(eventually([&] { return report().datasets.at(0).resident_samples == 200; }));
    const auto now = report();
    const auto& dataset = now.datasets.at(0);
    EXPECT_EQ(dataset.uid, "uid-7");
    EXPECT_TRUE(dataset.leader);
    EXPECT_EQ(dataset.stage, sidecar::ManifestStage::kReady);
    EXPECT_EQ(dataset.samples, 200U);
    EXPECT_EQ(dataset.total_bytes, data.manifest().total_bytes());
    EXPECT_EQ(dataset.hit_samples, 14U);
    EXPECT_EQ(dataset.miss_samples, 6U);
    EXPECT_EQ(dataset.cache_bytes_read, Bytes{1000});
    EXPECT_EQ(dataset.origin_requests, 200U);
    EXPECT_EQ(now.trainer.steps, 4U);
    EXPECT_EQ(now.trainer.fallback_samples, 10U);
    EXPECT_EQ(now.trainer.wait, Duration{60});
    EXPECT_EQ(now.trainer.epoch, 4U);
    EXPECT_EQ(now.trainer.epoch_samples, 200U);
    EXPECT_EQ(now.trainer.epoch_position, 3U);
}

TEST_F(SidecarMonitor, AJobThatHasEndedHasReadWhatItHasRead) {
    start();
    SampleClient client = connect(1);
    ASSERT_TRUE(client.plan(2, all()).has_value());
    read_all(client, all(), 2);
    client.close();
    ASSERT_TRUE(eventually([&] {
        return running->ask([](sidecar::Sidecar& sidecar) { return sidecar.session_count(); }) == 0;
    }));
    EXPECT_EQ(report().trainer.epoch, 2U);
    EXPECT_EQ(report().trainer.epoch_samples, 200U);
    EXPECT_EQ(report().trainer.epoch_position, 200U);
}

TEST_F(SidecarMonitor, FollowsAJobThatReadsUnderAContract) {
    start();
    SampleClient client = connect(1);
    draw_epoch(client, 5);
    EXPECT_EQ(report().trainer.epoch, 5U);
    EXPECT_EQ(report().trainer.epoch_samples, 100U) << "one of two ranks";
    EXPECT_EQ(report().trainer.epoch_position, 100U);
    client.close();
    EXPECT_EQ(report().trainer.epoch_position, 100U);
}

TEST_F(SidecarMonitor, FollowsAContractThroughALeaderElsewhere) {
    start();
    ASSERT_TRUE(eventually([&] { return status().state == sidecar::LeaderState::kServing; }));
    sidecar::SidecarConfig second = config;
    second.socket_path = folder.path() + "/second.sock";
    FakeOrigin* unused = nullptr;
    const auto follower = run(second, unused);
    SampleClient client{second.socket_path};
    ASSERT_TRUE(client.hello("train", 9).has_value());
    draw_epoch(client, 1);
    const auto told =
        follower->ask([](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar); });
    EXPECT_EQ(told.trainer.epoch, 1U);
    EXPECT_EQ(told.trainer.epoch_samples, 100U);
    EXPECT_EQ(told.trainer.epoch_position, 100U);
}

TEST_F(SidecarMonitor, TheOperatorsGrantReplacesTheConfiguredOne) {
    config.datasets[0].grant_bytes = Bytes::zero();
    start();
    SampleClient client = connect(1);
    read_all(client, {0}, 1);
    EXPECT_EQ(status().bytes.resident_samples, 0U);
    running->ask([this](sidecar::Sidecar& sidecar) {
        sidecar.set_grant("nobody", {Bytes::zero(), std::nullopt, 0});
        sidecar.set_grant("train", {mib(1), running->loop().now() + std::chrono::hours{1}, 0});
        return 0;
    });
    read_all(client, {1}, 1);
    EXPECT_EQ(status().bytes.resident_samples, 1U);
    EXPECT_EQ(report().datasets.at(0).granted_bytes, mib(1));
}

}  // namespace
}  // namespace stoker::test
