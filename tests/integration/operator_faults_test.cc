// A real operator during failures of the API server, of another replica and of its own process.
#include <fmt/format.h>
#include <signal.h>

#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using OperatorFaults = OperatorTest;

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

TEST_F(OperatorFaults, UnreadableObjectDoesNotHideOthers) {
    const auto made = cluster.api().create(
        kinds::kTrainingJobs,
        "ml",
        R"({"metadata":{"name":"broken"},"spec":{"trainer":"not an object","datasets":7}})");
    ASSERT_EQ(made.status, 201);
    run_job("mnist");
    EXPECT_THAT(operator_->log(), HasSubstr("object cannot be read"));
}

INSTANTIATE_TEST_SUITE_P(Answers, OperatorWithoutRights, ::testing::Values(401, 403, 404));

}  // namespace
}  // namespace stoker::test
