// Sidecars connected to a real operator over gRPC: statuses show their reports, grants reach them, and
// tokens of others are refused.
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
    control::Dataset dataset() {
        return control::parse_document<control::Dataset>(
                   cluster.find(kinds::kDatasets, "digits")->text())
            .value();
    }
};

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
         {"workqueue_depth{name=\"trainingjob\",priority=\"normal\"}",
          "workqueue_depth{name=\"trainingjob\",priority=\"background\"}",
          "stoker_plan_duration_seconds_bucket{le=\"0.001\"}",
          "rest_client_requests_total{method=\"GET\",code=\"200\"}",
          "rest_client_request_duration_seconds_count{verb=\"LIST\"}",
          "rest_client_request_duration_seconds_count{verb=\"PATCH\"}",
          "process_open_fds ",
          "stoker_jobs{state=\"Running\"} 1",
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

// The hello must match the namespace and pod in its token, and the token must be for the operator.
TEST_F(OperatorSidecars, RejectsTokensOfOtherAudiencesAndPods) {
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
