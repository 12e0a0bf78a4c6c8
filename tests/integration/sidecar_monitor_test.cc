// A sidecar's reports: /metrics, /status, probes, and the report to the operator.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sidecar/service/monitor.h"
#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {
namespace {

using testing::HasSubstr;

class SidecarMonitor : public SidecarTest {
protected:
    // The HTTP server's current answer.
    [[nodiscard]] http::ServerResponse get(
        const std::string& target, const std::string& peer = "127.0.0.1:1") const {
        return running->ask([&, this](sidecar::Sidecar& sidecar) {
            metrics::Registry registry;
            const sidecar::Monitor monitor{
                sidecar, running->loop(), registry, *config::AddressRanges::parse({"10.7.0.0/16"})};
            http::ServerRequest request;
            request.peer = peer;
            request.method = "GET";
            request.target = target;
            return monitor.answer(request);
        });
    }

    [[nodiscard]] sidecar::LinkReport report() const {
        return running->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar); });
    }

    [[nodiscard]] Bytes bytes_of(const std::vector<std::uint64_t>& ids) const {
        Bytes sum{};
        for (const std::uint64_t id : ids) {
            sum += Bytes{data.payload(domain::SampleId{id}).size()};
        }
        return sum;
    }

    // Reads one whole epoch as rank 0 of 2 under the windowed contract.
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
        ASSERT_TRUE(client.receive().has_value());  // the earlier frames were handled
    }
};

TEST_F(SidecarMonitor, CountsReadAndStoredSamples) {
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

TEST_F(SidecarMonitor, CountsReadsByAccess) {
    start();
    const auto report_as = [&](const std::string& program, std::uint64_t samples) {
        SampleClient client{config.socket_path};
        local::Hello hello;
        hello.dataset = "train";
        hello.client = program;
        ASSERT_TRUE(client.hello(hello).has_value());
        local::Report told;
        told.samples = samples;
        told.origin_samples = 1;
        told.bytes = 10 * samples;
        client.send_bytes(local::encode_frame(told, 0));
        ASSERT_TRUE(client.fetch({3}).has_value());  // the report was handled
    };
    report_as("stoker-files", 5);
    report_as("stoker-s3", 7);
    report_as("stoker-python/0.1.0", 9);
    report_as("stoker-files", 5);
    const std::string told = get("/metrics").body;
    const auto samples = [](const char* access, const char* source, int count) {
        return fmt::format(
            R"(stoker_sidecar_access_samples_total{{dataset="train",access="{}",source="{}"}} {})",
            access,
            source,
            count);
    };
    EXPECT_THAT(told, HasSubstr(samples("files", "node", 8)));
    EXPECT_THAT(told, HasSubstr(samples("files", "origin", 2)));
    EXPECT_THAT(told, HasSubstr(samples("s3", "node", 6)));
    EXPECT_THAT(told, HasSubstr(samples("sdk", "node", 8)));
    EXPECT_THAT(
        told,
        HasSubstr(R"(stoker_sidecar_access_bytes_total{dataset="train",access="files"} 100)"));
    EXPECT_THAT(told, HasSubstr("process_open_fds "));
}

TEST_F(SidecarMonitor, WritesItsStatusAsJson) {
    start();
    SampleClient client = connect(1);
    const auto status = get("/status?pretty");
    EXPECT_EQ(status.content_type, "application/json");
    EXPECT_THAT(status.body, HasSubstr("\"role\":\"leading\""));
    EXPECT_THAT(status.body, HasSubstr("\"state\":\"serving\""));
    EXPECT_THAT(status.body, HasSubstr("\"sessions\":1"));
    EXPECT_THAT(status.body, HasSubstr("\"windowSizeBytes\":67108864"));
    EXPECT_THAT(status.body, HasSubstr("\"windowLacksBytes\":0"));
}

TEST_F(SidecarMonitor, AddressesThatAreNotReadersGetOnlyTheProbes) {
    start();
    for (const char* peer : {"10.8.0.1:5", "[fd00::1]:5", "unknown"}) {
        EXPECT_EQ(get("/metrics", peer).status, 403);
        EXPECT_EQ(get("/status", peer).status, 403);
        EXPECT_EQ(get("/readyz", peer).status, 200);
        EXPECT_EQ(get("/healthz", peer).body, "ok\n");
    }
    EXPECT_EQ(get("/metrics", "10.7.0.1:5").status, 200);
    EXPECT_EQ(get("/status", "[::1]:5").status, 200);
}

TEST_F(SidecarMonitor, IsReadyDuringTheListing) {
    origin_error = Error{ErrorCode::kUnavailable, "503 from the bucket"};
    start();
    EXPECT_EQ(get("/readyz").status, 200);
    EXPECT_EQ(get("/healthz").status, 200);
    EXPECT_EQ(get("/nonsense").status, 404);
    ASSERT_TRUE(eventually(
        [&] { return report().datasets.at(0).manifest_state == control::ManifestState::kFailed; }));
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
    ASSERT_TRUE(client.fetch({3}).has_value());  // the earlier frames were handled
    ASSERT_TRUE(eventually([&] {
        const auto seen = report().datasets.at(0);
        return seen.resident_samples == 200 && seen.origin_requests == 200;
    }));
    const auto now = report();
    const auto& dataset = now.datasets.at(0);
    EXPECT_EQ(dataset.dataset_uid, "uid-7");
    EXPECT_TRUE(dataset.leader);
    EXPECT_EQ(dataset.manifest_state, control::ManifestState::kReady);
    EXPECT_EQ(dataset.samples, 200U);
    EXPECT_EQ(dataset.total_bytes, data.manifest().total_bytes());
    EXPECT_EQ(dataset.hit_samples, 0U) << "they were fetched for these reads";
    EXPECT_EQ(dataset.cache_bytes_read, Bytes::zero());
    EXPECT_EQ(dataset.miss_samples, 13U) << "three, and ten past the sidecar";
    EXPECT_EQ(dataset.miss_bytes_read, bytes_of({0, 1, 2}) + Bytes{1000});
    EXPECT_EQ(dataset.origin_requests, 200U);
    EXPECT_EQ(now.trainer.steps, 4U);
    EXPECT_EQ(now.trainer.fallback_samples, 10U);
    EXPECT_EQ(now.trainer.wait, Duration{60});
    EXPECT_EQ(now.trainer.epoch, 4U);
    EXPECT_EQ(now.trainer.epoch_samples, 200U);
    EXPECT_EQ(now.trainer.epoch_position, 3U);
}

// The read of a prefetched sample is a miss as well: the sample came from the origin for that read.
TEST_F(SidecarMonitor, AColdEpochHasNoHitsAndAWarmOneOnlyHits) {
    start();
    SampleClient client = connect(1);
    ASSERT_TRUE(client.plan(0, all()).has_value());
    ASSERT_TRUE(eventually([&] { return status().usage.resident_samples == 200; }));
    read_all(client, all(), 0);
    ASSERT_TRUE(client.plan(1, all()).has_value());  // the earlier frames were handled
    auto dataset = report().datasets.at(0);
    EXPECT_EQ(dataset.hit_samples, 0U);
    EXPECT_EQ(dataset.miss_samples, 200U);
    EXPECT_EQ(dataset.miss_bytes_read, data.manifest().total_bytes());
    read_all(client, all(), 1);
    ASSERT_TRUE(client.plan(2, all()).has_value());
    dataset = report().datasets.at(0);
    EXPECT_EQ(dataset.hit_samples, 200U);
    EXPECT_EQ(dataset.cache_bytes_read, data.manifest().total_bytes());
    EXPECT_EQ(dataset.miss_samples, 200U);
}

// Whichever sidecar leads, each job's report has the cost of its own reads.
TEST_F(SidecarMonitor, ASecondJobHitsSamplesThatTheFirstFetched) {
    start();
    SampleClient client = connect(1);
    read_all(client, all(), 0);
    sidecar::SidecarConfig second = config;
    second.socket_path = folder.path() + "/second.sock";
    FakeOrigin* unused = nullptr;
    const auto follower = run(second, unused);
    SampleClient other{second.socket_path};
    ASSERT_TRUE(other.hello("train", 9).has_value());
    read_all(other, all(), 0);
    other.close();  // its last frame is counted all the same
    const auto told = [&] {
        return follower
            ->ask([](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar); })
            .datasets.at(0);
    };
    ASSERT_TRUE(eventually([&] { return told().hit_samples == 200; })) << told().hit_samples;
    EXPECT_FALSE(told().leader);
    EXPECT_EQ(told().cache_bytes_read, data.manifest().total_bytes());
    EXPECT_EQ(told().miss_samples, 0U);
    EXPECT_EQ(report().datasets.at(0).hit_samples, 0U);
    EXPECT_EQ(report().datasets.at(0).miss_samples, 200U);
}

TEST_F(SidecarMonitor, ReportsTheDisksCapacity) {
    config.datasets[0].reserved_free = 0.999;
    start();
    SampleClient client = connect(1);
    ASSERT_TRUE(report().datasets.at(0).disk_limit.has_value());
    const auto limit = *report().datasets.at(0).disk_limit;
    EXPECT_EQ(limit.resident, Bytes::zero());
    EXPECT_GT(limit.kept_free, gib(1));
    EXPECT_THAT(get("/metrics").body, HasSubstr("stoker_sidecar_disk_limit_bytes"));
}

TEST_F(SidecarMonitor, KeepsTheTotalsOfAnEndedJob) {
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

TEST_F(SidecarMonitor, ReportsTheEpochOfAJobUnderAContract) {
    start();
    SampleClient client = connect(1);
    draw_epoch(client, 5);
    EXPECT_EQ(report().trainer.epoch, 5U);
    EXPECT_EQ(report().trainer.epoch_samples, 100U) << "one of two ranks";
    EXPECT_EQ(report().trainer.epoch_position, 100U);
    client.close();
    EXPECT_EQ(report().trainer.epoch_position, 100U);
}

TEST_F(SidecarMonitor, FollowerReportsTheEpochOfItsJobUnderAContract) {
    start();
    ASSERT_TRUE(
        eventually([&] { return status().manifest_state == control::ManifestState::kReady; }));
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
        sidecar.set_grant("nobody", {Bytes::zero(), std::nullopt, 0}, {});
        sidecar.set_grant("train", {mib(1), running->loop().now() + std::chrono::hours{1}, 0}, {});
        return 0;
    });
    read_all(client, {1}, 1);
    EXPECT_EQ(status().bytes.resident_samples, 1U);
    EXPECT_EQ(report().datasets.at(0).granted_bytes, mib(1));
}

TEST_F(SidecarMonitor, AGrantThatTheLinkReceivesReachesItsDataset) {
    config.datasets[0].grant_bytes = Bytes::zero();
    start();
    SampleClient client = connect(1);
    const sidecar::LinkCallbacks link =
        running->ask([](sidecar::Sidecar& sidecar) { return sidecar.link_callbacks(); });
    control::Grant grant;
    grant.dataset_uid = "train";
    grant.resident_bytes = mib(1);
    grant.valid_seconds = 3600;
    link.grant(grant);  // on this thread, which is not the loop's
    EXPECT_EQ(report().datasets.at(0).granted_bytes, mib(1));  // asks the loop, after the grant
    read_all(client, {1}, 1);
    EXPECT_EQ(status().bytes.resident_samples, 1U);
}

}  // namespace
}  // namespace stoker::test
