// Sidecars connected to a real operator: statuses show their reports, and grants reach them.
#include <atomic>
#include <fstream>

#include <fmt/format.h>

#include "operator/api/dataset.h"
#include "sidecar/control/control_link.h"
#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::HasSubstr;

class OperatorSidecars : public OperatorTest {
protected:
    // Returns the next non-empty grant.
    static std::uint64_t next_grant(testing::SidecarClient& sidecar) {
        control::v1::OperatorMessage message;
        while (sidecar.receive(message)) {
            if (message.grants_size() > 0) {
                return message.grants(0).resident_bytes();
            }
        }
        return 0;
    }

    // Returns the next pinned revision; "" when the stream ends.
    static std::string next_pin(testing::SidecarClient& sidecar) {
        control::v1::OperatorMessage message;
        while (sidecar.receive(message)) {
            if (message.pins_size() > 0) {
                return message.pins(0).revision();
            }
        }
        return "";
    }

    control::Dataset dataset() {
        return control::parse_document<control::Dataset>(
                   cluster.find(kinds::kDatasets, "digits")->text())
            .value();
    }
};

TEST_F(OperatorSidecars, ReportsAppearInTheStatuses) {
    run_job("mnist");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 60'000)));
    EXPECT_EQ(wait_condition(kinds::kDatasets, "digits", "Ready", "True Listed"), "True Listed");
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 60'000; }));
    EXPECT_EQ(dataset().status.total_bytes, 100'000);
    EXPECT_EQ(dataset().status.samples, 100);
    EXPECT_EQ(dataset().status.nodes, 1);
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "DataReady", "True Listed"), "True Listed");
    EXPECT_TRUE(eventually([&] {
        const auto cache = cluster.training_job("mnist").status.cache;
        return cache && cache->used_bytes == 60'000 && cache->sampled_at.has_value();
    }));
}

TEST_F(OperatorSidecars, GrantCoversTheDatasetAndStatesTheReason) {
    run_job("mnist");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 0)));
    std::uint64_t granted = 0;
    while (granted == 0 && (granted = next_grant(*sidecar)) == 0) {
    }
    EXPECT_GE(granted, 100'000U);
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "CacheAllocated", "True Granted"),
        "True Granted");
}

TEST_F(OperatorSidecars, QuotaLimitsTheGrantAndIsNamedAsTheReason) {
    cluster.add(
        kinds::kCacheQuotas,
        "quota",
        R"({"poolRef":{"name":"nvme"},"nominalQuota":"10Ki","borrowingLimit":"0"})");
    run_job("mnist", 1, R"(,"cache":{"mode":"Fixed","maxBytes":"1Mi"})");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 0)));
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "CacheAllocated", "True QuotaExhausted"),
        "True QuotaExhausted");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "mnist", "CacheAllocated"), HasSubstr("10Ki"));
    EXPECT_EQ(wait_condition(kinds::kCacheQuotas, "quota", "Active", "True Active"), "True Active");
    EXPECT_EQ(next_grant(*sidecar), 10U * 1024);
}

TEST_F(OperatorSidecars, SecondQuotaForAPoolIsADuplicate) {
    const std::string spec = R"({"poolRef":{"name":"nvme"},"nominalQuota":"1Mi"})";
    cluster.add(kinds::kCacheQuotas, "a", spec);
    cluster.add(kinds::kCacheQuotas, "b", spec);
    EXPECT_EQ(wait_condition(kinds::kCacheQuotas, "a", "Active", "True Active"), "True Active");
    EXPECT_EQ(
        wait_condition(kinds::kCacheQuotas, "b", "Active", "False Duplicate"), "False Duplicate");
    cluster.remove(kinds::kCacheQuotas, "a");
    EXPECT_EQ(wait_condition(kinds::kCacheQuotas, "b", "Active", "True Active"), "True Active");
}

TEST_F(OperatorSidecars, GrantsAreRepeatedBeforeExpiry) {
    run_job("mnist");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 0)));
    std::uint64_t granted = 0;
    while (granted == 0 && (granted = next_grant(*sidecar)) == 0) {
    }
    // The grant is valid for ten seconds and unchanged, but sent again.
    EXPECT_EQ(next_grant(*sidecar), granted);
}

TEST_F(OperatorSidecars, QuotesAFailedListingUntilItSucceeds) {
    run_job("mnist");
    const auto sidecar = attach("mnist");
    control::v1::Report report = report_of(1, 0);
    report.mutable_datasets(0)->set_manifest_state(control::v1::MANIFEST_STATE_FAILED);
    report.mutable_datasets(0)->set_error("404 NoSuchBucket: bucket");
    ASSERT_TRUE(sidecar->report(report));
    EXPECT_EQ(
        wait_condition(kinds::kDatasets, "digits", "Ready", "False OriginFailed"),
        "False OriginFailed");
    EXPECT_THAT(cluster.message(kinds::kDatasets, "digits", "Ready"), HasSubstr("NoSuchBucket"));
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "DataReady", "False OriginFailed"),
        "False OriginFailed");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "mnist", "DataReady"), HasSubstr("NoSuchBucket"));
    ASSERT_TRUE(sidecar->report(report_of(2, 0)));
    EXPECT_EQ(wait_condition(kinds::kDatasets, "digits", "Ready", "True Listed"), "True Listed");
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "DataReady", "True Listed"), "True Listed");
}

TEST_F(OperatorSidecars, SidecarCannotReportForOthers) {
    run_job("mnist");
    const std::string other = cluster.add_dataset("other");
    const std::string pod = FakeCluster::pod_name("mnist-a1", 0);
    cluster.add_token("token.of.stranger", pod, "node-1");
    testing::SidecarClient impostor(
        operator_->wait_control_address(), operator_->ca(), "token.of.stranger");
    control::v1::Hello hello = testing::make_hello("ml", pod);
    hello.set_training_job_uid(cluster.uid_of(kinds::kTrainingJobs, "mnist"));
    hello.mutable_datasets(0)->set_dataset_uid(other);
    impostor.hello(hello);
    control::v1::Report report = testing::make_report(1, 999'999);
    report.mutable_datasets(0)->set_dataset_uid(other);
    ASSERT_TRUE(impostor.report(report));
    ASSERT_TRUE(eventually([&] {
        return operator_->http_body("/metrics")
                   .find("stoker_control_reports_total{result=\"accepted\"} 1") !=
               std::string::npos;
    }));
    // A valid report at about the same time proves that statuses are being written.
    run_job("honest");
    const auto sidecar = attach("honest");
    ASSERT_TRUE(sidecar->report(report_of(1, 60'000)));
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 60'000; }));
    EXPECT_EQ(cluster.condition(kinds::kDatasets, "other", "Ready"), "Unknown NotListed");
}

TEST_F(OperatorSidecars, ServesItsOwnMetrics) {
    run_job("mnist");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 60'000)));
    // The metric follows the operator's own watch, shortly after the API server's change.
    const std::string cached =
        "stoker_dataset_cached_bytes{namespace=\"ml\",dataset=\"digits\"} 60000";
    EXPECT_TRUE(eventually(
        [&] { return operator_->http_body("/metrics").find(cached) != std::string::npos; }));
    const std::string body = operator_->http_body("/metrics");
    for (const char* line :
         {"workqueue_depth{name=\"trainingjob\"}",
          "workqueue_work_duration_seconds_count{name=\"trainingjob\"}",
          "workqueue_queue_duration_seconds_count{name=\"dataset\"}",
          "stoker_watch_synced{kind=\"trainingjobs\"} 1",
          "stoker_watch_objects{kind=\"trainingjobs\"} 1",
          "stoker_watch_silence_seconds{kind=\"nodes\"}",
          "leader_election_master_status{name=\"stoker-operator\"} 1",
          "stoker_control_attached 1",
          "stoker_job_running{namespace=\"ml\",training_job=\"mnist\"} 1",
          "stoker_pool_nodes{pool=\"nvme\"} 1"}) {
        EXPECT_THAT(body, HasSubstr(line));
    }
}

TEST_F(OperatorSidecars, RejectsInvalidToken) {
    run_job("mnist");
    testing::SidecarClient stranger(
        operator_->wait_control_address(), operator_->ca(), "not.a.token");
    stranger.hello(testing::make_hello("ml", FakeCluster::pod_name("mnist-a1", 0)));
    EXPECT_EQ(stranger.finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// A token names its audience, its pod and its expiry; the hello must match.
TEST_F(OperatorSidecars, RejectsTokensOfOthers) {
    run_job("mnist");
    const std::string pod = FakeCluster::pod_name("mnist-a1", 0);
    const auto add_token = [&](const std::string& token,
                               const std::string& ns,
                               const std::string& of_pod,
                               const std::string& audience) {
        const auto user = control::Json::parse(fmt::format(
            R"({{"username":"system:serviceaccount:{}:default","extra":{{)"
            R"("authentication.kubernetes.io/pod-name":["{}"]}}}})",
            ns,
            of_pod));
        cluster.api().with_model(
            [&](ApiServerModel& model) { model.add_token(token, *user, {audience}); });
    };
    add_token("namespace.of.another", "hr", pod, "stoker.dev");
    add_token("pod.of.another", "ml", "other-0-x", "stoker.dev");
    add_token("audience.of.another", "ml", pod, "debug.stoker.dev");
    add_token("account.without.pod", "ml", "", "stoker.dev");

    struct Case {
        std::string token;
        grpc::StatusCode want;
    };

    for (const Case& c :
         {Case{"namespace.of.another", grpc::StatusCode::PERMISSION_DENIED},
          Case{"pod.of.another", grpc::StatusCode::PERMISSION_DENIED},
          Case{"audience.of.another", grpc::StatusCode::UNAUTHENTICATED},
          Case{"account.without.pod", grpc::StatusCode::UNAUTHENTICATED},
          Case{"expired.or.forged", grpc::StatusCode::UNAUTHENTICATED}}) {
        testing::SidecarClient thief(operator_->wait_control_address(), operator_->ca(), c.token);
        thief.hello(testing::make_hello("ml", pod));
        EXPECT_EQ(thief.finish().error_code(), c.want) << c.token;
    }
    EXPECT_THAT(operator_->http_body("/metrics"), HasSubstr("stoker_control_attached 0"));
}

// Two nodes list a changing origin at different times.
TEST_F(OperatorSidecars, PinsOneRevisionAndAnotherOneEndsTheAttempt) {
    run_job("mnist", 2);
    const auto first = attach("mnist", 0);
    const auto second = attach("mnist", 1);
    control::v1::Report told = report_of(1, 0);
    told.mutable_datasets(0)->set_read_revision("00000000000000aa");
    ASSERT_TRUE(first->report(told));
    EXPECT_EQ(next_pin(*first), "00000000000000aa");
    EXPECT_EQ(next_pin(*second), "00000000000000aa");
    const control::TrainingJob job = cluster.training_job("mnist");
    ASSERT_EQ(job.status.datasets.size(), 1U);
    EXPECT_EQ(job.status.datasets[0].revision, "00000000000000aa") << "written before it is told";
    EXPECT_EQ(job.status.datasets[0].revision_attempt, 1);
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "OriginUnchanged", "True Unchanged"),
        "True Unchanged");
    control::v1::Report changed = report_of(1, 0);
    changed.mutable_datasets(0)->set_read_revision("00000000000000bb");
    changed.mutable_datasets(0)->mutable_origin_change()->set_key("cat/7.png");
    changed.mutable_datasets(0)->mutable_origin_change()->set_keys(1);
    ASSERT_TRUE(second->report(changed));
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "OriginUnchanged", "False OriginChanged"),
        "False OriginChanged");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "mnist", "OriginUnchanged"), HasSubstr("cat/7.png"));
    EXPECT_TRUE(eventually([&] { return cluster.training_job("mnist").status.attempt == 2; }));
    EXPECT_TRUE(
        eventually([&] { return cluster.operator_events("mnist").contains("OriginChanged"); }));
}

TEST_F(OperatorSidecars, NewOperatorPinsTheSameRevision) {
    run_job("mnist", 2);
    control::v1::Report told = report_of(1, 0);
    told.mutable_datasets(0)->set_read_revision("00000000000000aa");
    const auto first = attach("mnist", 0);
    ASSERT_TRUE(first->report(told));
    EXPECT_EQ(next_pin(*first), "00000000000000aa");
    operator_.reset();
    start("operator-1");
    const auto second = attach("mnist", 1);
    told.mutable_datasets(0)->set_read_revision("00000000000000bb");
    ASSERT_TRUE(second->report(told));
    EXPECT_EQ(next_pin(*second), "00000000000000aa");
}

// Uses the sidecar's own link code, not a test client.
TEST_F(OperatorSidecars, RealSidecarLinkAttachesReportsAndReceivesGrants) {
    run_job("mnist");
    const std::string pod = FakeCluster::pod_name("mnist-a1", 0);
    cluster.add_token("token.of.link", pod, "node-1");
    const TempFolder folder;
    const std::string token_file = folder.path() + "/token";
    std::ofstream(token_file) << "token.of.link\n";
    sidecar::ControlConfig settings;
    settings.endpoint = operator_->wait_control_address();
    settings.ca_pem = operator_->ca();
    settings.token_file = token_file;
    sidecar::JobConfig identity;
    identity.pod_namespace = "ml";
    identity.pod = pod;
    identity.node = "node-1";
    identity.training_job = "mnist";
    identity.training_job_uid = cluster.uid_of(kinds::kTrainingJobs, "mnist");
    sidecar::DatasetConfig mount;
    mount.name = "train";
    mount.uid = dataset_uid;

    control::DatasetReport told;
    told.name = "train";
    told.dataset_uid = dataset_uid;
    told.leader = true;
    told.manifest_state = control::ManifestState::kReady;
    told.samples = 100;
    told.total_bytes = Bytes{100'000};
    told.resident_bytes = Bytes{70'000};
    std::atomic<std::uint64_t> granted{0};
    sidecar::LinkCallbacks callbacks;
    callbacks.report = [&] { return sidecar::LinkReport{{0, {told}, {}}}; };
    callbacks.grant = [&](const control::Grant& grant) { granted = grant.resident_bytes.count(); };
    sidecar::LinkOptions options;
    options.report_interval = std::chrono::milliseconds{50};
    auto link =
        sidecar::ControlLink::start(settings, identity, {mount}, std::move(callbacks), options);
    ASSERT_TRUE(link);
    EXPECT_TRUE(eventually([&] { return granted >= 100'000; }));
    EXPECT_TRUE((*link)->is_attached());
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 70'000; }));
}

}  // namespace
}  // namespace stoker::test
