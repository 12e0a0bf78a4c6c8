// The life of a TrainingJob, checked by the objects that a real operator creates at a fake API
// server.
#include <cpprest/json.h>
#include <signal.h>

#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using OperatorJobs = OperatorTest;

TEST_F(OperatorJobs, TrainingJobCreatesJobAndService) {
    cluster.add_training_job("mnist", 2);
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
    ASSERT_TRUE(wait_object(kinds::kServices, "mnist-ranks"));
    const std::string uid = cluster.uid_of(kinds::kTrainingJobs, "mnist");
    for (const auto& child :
         {*cluster.find(kinds::kJobs, "mnist-a1"),
          *cluster.find(kinds::kServices, "mnist-ranks")}) {
        const auto& owner = child.value().at("metadata").at("ownerReferences").at(0);
        EXPECT_EQ(control::string_at(owner, {"uid"}), uid);
        EXPECT_EQ(control::string_at(owner, {"kind"}), "TrainingJob");
        EXPECT_TRUE(owner.at("controller").as_bool());
    }
    EXPECT_EQ(wait_state("mnist", "False Starting"), "False Starting");
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 1);

    cluster.run_pods("mnist-a1", "node-1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    cluster.finish("mnist-a1", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    EXPECT_TRUE(eventually([&] { return cluster.operator_events("mnist").contains("Complete"); }));
}

TEST_F(OperatorJobs, FailedAttemptIsReplacedAfterItsPodsAreGone) {
    run_job("mnist", 2, R"(,"runPolicy":{"backoffLimit":1})");
    cluster.hold(kinds::kJobs, "mnist-a1");
    cluster.finish("mnist-a1", 1);
    EXPECT_EQ(wait_state("mnist", "False Restarting"), "False Restarting");
    ASSERT_TRUE(eventually([&] {
        return cluster.find(kinds::kJobs, "mnist-a1")
            ->value()
            .at("metadata")
            .has_field("deletionTimestamp");
    }));
    EXPECT_THAT(cluster.names(kinds::kJobs), ElementsAre("mnist-a1"));
    cluster.let_go(kinds::kJobs, "mnist-a1");
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a2"));
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 2);
    EXPECT_EQ(cluster.training_job("mnist").status.restarts, 1);

    cluster.run_pods("mnist-a2", "node-1");
    cluster.finish("mnist-a2", 3);
    EXPECT_EQ(wait_state("mnist", "True Failed"), "True Failed");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "mnist", "Failed"),
        AllOf(HasSubstr("code 3"), HasSubstr("backoffLimit 1")));
    EXPECT_THAT(cluster.names(kinds::kJobs), ElementsAre("mnist-a2"));
}

TEST_F(OperatorJobs, SuspendStopsAndResumeRestarts) {
    run_job("mnist");
    cluster.change(kinds::kTrainingJobs, "mnist", R"({"spec":{"suspend":true}})");
    EXPECT_EQ(wait_state("mnist", "False Suspended"), "False Suspended");
    EXPECT_TRUE(wait_gone(kinds::kJobs, "mnist-a1"));
    cluster.change(kinds::kTrainingJobs, "mnist", R"({"spec":{"suspend":false}})");
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
    cluster.run_pods("mnist-a1", "node-1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 1);
    EXPECT_EQ(cluster.training_job("mnist").status.restarts, 0);
}

TEST_F(OperatorJobs, FinishedJobIsDeletedAfterItsTtl) {
    run_job("mnist", 1, R"(,"runPolicy":{"ttlSecondsAfterFinished":1})");
    cluster.finish("mnist-a1", 0);
    EXPECT_TRUE(wait_gone(kinds::kTrainingJobs, "mnist"));
    EXPECT_TRUE(wait_gone(kinds::kJobs, "mnist-a1"));
}

TEST_F(OperatorJobs, DeletedJobLeavesNothingAndIsNotRecreated) {
    run_job("mnist", 2);
    cluster.remove(kinds::kTrainingJobs, "mnist");
    EXPECT_TRUE(wait_gone(kinds::kJobs, "mnist-a1"));
    EXPECT_TRUE(wait_gone(kinds::kServices, "mnist-ranks"));
    // Run another job from start to end, so that the operator has time for a wrong action.
    run_job("other");
    cluster.finish("other-a1", 0);
    EXPECT_EQ(wait_state("other", "True Complete"), "True Complete");
    EXPECT_THAT(cluster.names(kinds::kTrainingJobs), ElementsAre("other"));
    EXPECT_THAT(cluster.names(kinds::kJobs), ElementsAre("other-a1"));
}

TEST_F(OperatorJobs, JobWaitsForItsDataset) {
    cluster.remove(kinds::kDatasets, "digits");
    cluster.add_training_job("early");
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "early", "DataReady", "False DatasetNotFound"),
        "False DatasetNotFound");
    EXPECT_THAT(cluster.message(kinds::kTrainingJobs, "early", "DataReady"), HasSubstr("digits"));
    EXPECT_THAT(cluster.names(kinds::kJobs), IsEmpty());
    cluster.add_dataset("digits");
    EXPECT_TRUE(wait_object(kinds::kJobs, "early-a1"));
}

TEST_F(OperatorJobs, StatusExplainsWhyPodsCannotBeCreated) {
    cluster.add_training_job("mnist");
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
    cluster.add_event(
        "mnist-a1",
        "FailedCreate",
        "pods is forbidden: violates PodSecurity \\\"baseline:latest\\\": hostPath volumes");
    EXPECT_TRUE(eventually([&] {
        return cluster.message(kinds::kTrainingJobs, "mnist", "Finished").find("PodSecurity") !=
               std::string::npos;
    })) << cluster.message(kinds::kTrainingJobs, "mnist", "Finished");
    cluster.run_pods("mnist-a1", "node-1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
}

TEST_F(OperatorJobs, StatusQuotesTheApiServersRefusal) {
    Fault refusal;
    refusal.method = "POST";
    refusal.target_contains = "/jobs";
    refusal.times = -1;
    refusal.status = 422;
    refusal.body =
        R"({"kind":"Status","status":"Failure","reason":"Invalid","message":"spec.template.spec.volumes[0]: not found","code":422})";
    cluster.api().add_fault(refusal);
    cluster.add_training_job("mnist");
    EXPECT_TRUE(eventually([&] {
        return cluster.message(kinds::kTrainingJobs, "mnist", "Finished").find("volumes[0]") !=
               std::string::npos;
    }));
    // After a person has fixed the spec, the job continues.
    cluster.api().clear_faults();
    cluster.change(kinds::kTrainingJobs, "mnist", R"({"spec":{"trainer":{"image":"trainer:2"}}})");
    EXPECT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
}

TEST_F(OperatorJobs, DoesNotChangeAForeignJob) {
    const auto made = cluster.api().create(
        kinds::kJobs, "ml", R"({"metadata":{"name":"mnist-a1"},"spec":{"completions":1}})");
    ASSERT_EQ(made.status, 201);
    cluster.add_training_job("mnist");
    EXPECT_EQ(wait_state("mnist", "False NameTaken"), "False NameTaken");
    EXPECT_FALSE(cluster.find(kinds::kJobs, "mnist-a1")
                     ->value()
                     .at("metadata")
                     .has_field("ownerReferences"));
}

}  // namespace
}  // namespace stoker::test
