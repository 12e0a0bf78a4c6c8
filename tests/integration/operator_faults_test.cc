// A real operator during failures of the API server, of another replica and of its own process.
#include <fmt/format.h>
#include <signal.h>

#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using OperatorFaults = OperatorTest;

TEST_F(OperatorFaults, ContinuesAfterApiServerOutage) {
    run_job("mnist", 2, R"(,"runPolicy":{"backoffLimit":1})");
    cluster.api().set_down(true);
    // The API server is down in both directions, for reads and for writes.
    ASSERT_EQ(operator_->http_status("/healthz"), 200);
    cluster.api().set_down(false);
    cluster.finish("mnist-a1", 1);
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a2"));
    EXPECT_THAT(cluster.names(kinds::kJobs), ElementsAre("mnist-a2"));
}

TEST_F(OperatorFaults, ConflictsAndErrorsDoNotChangeTheOutcome) {
    for (const int status : {409, 500, 503, 429}) {
        for (const char* method : {"PATCH", "POST", "DELETE"}) {
            Fault fault;
            fault.method = method;
            fault.target_contains = "/namespaces/ml/";
            fault.status = status;
            fault.skip = status % 3;
            fault.body = fmt::format(
                R"({{"kind":"Status","status":"Failure","reason":"{}","message":"on order","code":{}}})",
                status == 409 ? "Conflict" : "InternalError",
                status);
            cluster.api().add_fault(fault);
        }
    }
    Fault lost;
    lost.method = "POST";
    lost.target_contains = "/jobs";
    lost.lose_answer = true;
    cluster.api().add_fault(lost);

    cluster.add_training_job("mnist", 2, R"(,"runPolicy":{"backoffLimit":1})");
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
    cluster.run_pods("mnist-a1", "node-1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    cluster.finish("mnist-a1", 1);
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a2"));
    cluster.run_pods("mnist-a2", "node-1");
    cluster.finish("mnist-a2", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 2);
    EXPECT_EQ(cluster.training_job("mnist").status.restarts, 1);
    EXPECT_THAT(cluster.names(kinds::kJobs), ElementsAre("mnist-a2"));
}

TEST_F(OperatorFaults, OperatorRestartDuringJobRestartLosesNothing) {
    run_job("mnist", 2, R"(,"runPolicy":{"backoffLimit":1})");
    cluster.hold(kinds::kJobs, "mnist-a1");
    cluster.finish("mnist-a1", 1);
    ASSERT_EQ(wait_state("mnist", "False Restarting"), "False Restarting");
    operator_->signal(SIGKILL);
    operator_->wait_exit();
    cluster.let_go(kinds::kJobs, "mnist-a1");
    start("operator-1");
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a2"));
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 2);
    EXPECT_EQ(cluster.training_job("mnist").status.restarts, 1);
}

TEST_F(OperatorFaults, OneOfTwoReplicasActsAndTheOtherTakesOver) {
    ASSERT_FALSE(operator_->wait_control_address().empty());
    RunningOperator::Options options;
    options.api_server = cluster.api().url();
    options.pod_name = "operator-1";
    RunningOperator second(options);
    ASSERT_TRUE(second.wait_ready());
    run_job("mnist", 2);
    EXPECT_THAT(
        second.http_body("/metrics"),
        HasSubstr("leader_election_master_status{name=\"stoker-operator\"} 0"));
    EXPECT_THAT(
        operator_->http_body("/metrics"),
        HasSubstr("leader_election_master_status{name=\"stoker-operator\"} 1"));
    EXPECT_THAT(second.log(), Not(HasSubstr("starting an attempt")));

    EXPECT_EQ(operator_->terminate(), 0);
    cluster.finish("mnist-a1", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    EXPECT_THAT(second.wait_control_address(), HasSubstr("localhost:"));
}

TEST_F(OperatorFaults, ExitsAtOnceWhenItLosesTheLease) {
    ASSERT_FALSE(operator_->wait_control_address().empty());
    Fault refusal;
    refusal.target_contains = "/leases/";
    refusal.times = -1;
    refusal.status = 503;
    refusal.body = "away";
    cluster.api().add_fault(refusal);
    EXPECT_EQ(operator_->wait_exit(), 1);
    EXPECT_THAT(operator_->log(), HasSubstr("leadership lost"));
}

TEST_F(OperatorFaults, NotReadyUntilEveryKindIsServed) {
    operator_->terminate();
    cluster.api().with_model(
        [](ApiServerModel& model) { model.stop_serving(kinds::kCacheQuotas); });
    start();
    ASSERT_TRUE(eventually([&] { return operator_->http_status("/readyz") == 503; }));
    EXPECT_EQ(operator_->http_status("/healthz"), 200);
    EXPECT_TRUE(eventually(
        [&] { return operator_->http_body("/readyz") == "not listed yet: cachequotas\n"; }));
    cluster.api().with_model([](ApiServerModel& model) { model.serve(kinds::kCacheQuotas, true); });
    EXPECT_TRUE(operator_->wait_ready());
}

TEST_F(OperatorFaults, ExitsCleanlyAtAnyTime) {
    ASSERT_EQ(operator_->http_status("/healthz"), 200);
    EXPECT_EQ(operator_->terminate(), 0);
    start();
    ASSERT_TRUE(operator_->wait_ready());
    EXPECT_EQ(operator_->terminate(), 0);
    cluster.api().set_down(true);
    start();
    ASSERT_TRUE(eventually([&] { return operator_->http_status("/healthz") == 200; }));
    EXPECT_EQ(operator_->terminate(), 0);
}

// The order of `helm uninstall`: rights, account or Lease are deleted before the pods.
class OperatorWithoutRights : public OperatorTest, public ::testing::WithParamInterface<int> {};

TEST_P(OperatorWithoutRights, ExitsInTimeWithoutEndlessRetries) {
    operator_->terminate();
    RunningOperator::Options options;
    options.api_server = cluster.api().url();
    options.lease_seconds = 300;  // longer than any wait of this test, and no lease expires before
    operator_ = std::make_unique<RunningOperator>(options);
    ASSERT_FALSE(operator_->wait_control_address().empty());
    run_job("mnist", 2);
    const auto sidecar = attach("mnist");
    Fault refusal;
    refusal.times = -1;
    refusal.status = GetParam();
    refusal.body = "on order";
    cluster.api().add_fault(refusal);
    cluster.api().cut_watches();
    EXPECT_EQ(operator_->terminate(), 0);
    EXPECT_THAT(operator_->log(), HasSubstr("\"lease released\""));
}

INSTANTIATE_TEST_SUITE_P(Answers, OperatorWithoutRights, ::testing::Values(401, 403, 404));

TEST_F(OperatorFaults, UnreadableObjectDoesNotHideOthers) {
    const auto made = cluster.api().create(
        kinds::kTrainingJobs,
        "ml",
        R"({"metadata":{"name":"broken"},"spec":{"trainer":"not an object","datasets":7}})");
    ASSERT_EQ(made.status, 201);
    run_job("mnist");
    EXPECT_THAT(operator_->log(), HasSubstr("object cannot be read"));
}

}  // namespace
}  // namespace stoker::test
