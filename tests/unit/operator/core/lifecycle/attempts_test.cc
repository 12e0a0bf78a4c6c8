#include "operator/core/lifecycle/attempts.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(FindAttempts, TakesTheNewestOfStatusAndJobs) {
    TrainingJobView view = make_view();
    EXPECT_EQ(find_attempts(view).number, 0);
    view.jobs = {make_job(view, 3), make_job(view, 2)};
    view.job.status.attempt = 2;
    Attempts attempts = find_attempts(view);
    EXPECT_EQ(attempts.number, 3);
    EXPECT_EQ(attempts.current->meta.name, "resnet-a3");
    ASSERT_EQ(attempts.older.size(), 1U);
    EXPECT_EQ(attempts.older[0]->meta.name, "resnet-a2");
    view.job.status.attempt = 4;
    attempts = find_attempts(view);
    EXPECT_EQ(attempts.number, 4);
    EXPECT_EQ(attempts.current, nullptr);
    EXPECT_EQ(attempts.older.size(), 2U);
}

TEST(FindAttempts, IgnoresJobsOfOthers) {
    TrainingJobView view = make_view();
    view.jobs = {make_job(view, 3)};
    view.jobs[0].meta.owners[0].uid = "another";
    EXPECT_EQ(find_attempts(view).number, 0);
    EXPECT_EQ(find_attempts(view).current, nullptr);
}

TEST(OlderAttemptsAreGone, RequiresThatNoPodAndNoJobExists) {
    TrainingJobView view = make_view();
    view.job.status.attempt = 2;
    EXPECT_TRUE(pods_are_gone(view, find_attempts(view), wall(0)));
    view.jobs = {make_job(view, 1)};
    EXPECT_FALSE(pods_are_gone(view, find_attempts(view), wall(0)));
    view.jobs.clear();
    view.pods = {make_pod(view, 1, 0)};
    EXPECT_FALSE(pods_are_gone(view, find_attempts(view), wall(0)));
    view.pods[0].phase = PodPhase::kFailed;
    EXPECT_TRUE(pods_are_gone(view, find_attempts(view), wall(0)));
}

TEST(OlderAttemptsAreGone, DoesNotWaitForPodsOnLostNodes) {
    TrainingJobView view = make_view();
    view.job.status.attempt = 2;
    view.jobs = {make_job(view, 1)};
    view.pods = {make_pod(view, 1, 0)};
    view.pods[0].meta.deleting_since = wall(100);
    view.nodes[0].ready = false;
    view.nodes[0].not_ready_since = wall(100);
    EXPECT_FALSE(pods_are_gone(view, find_attempts(view), wall(159)));
    EXPECT_TRUE(pods_are_gone(view, find_attempts(view), wall(160)));
    view.pods.push_back(make_pod(view, 1, 1));  // on a ready node
    EXPECT_FALSE(pods_are_gone(view, find_attempts(view), wall(160)));
}

TEST(LostPods, AreTerminatingPodsOnDeletedNodes) {
    TrainingJobView view = make_running_view();
    EXPECT_TRUE(lost_pods(view, "resnet-a1", wall(1000)).empty());
    view.nodes.erase(view.nodes.begin());
    EXPECT_TRUE(lost_pods(view, "resnet-a1", wall(1000)).empty())
        << "the pod is not terminating yet";
    view.pods[0].meta.deleting_since = wall(1);
    view.pods[1].meta.deleting_since = wall(1);
    EXPECT_EQ(
        lost_pods(view, "resnet-a1", wall(2)), std::vector<std::string>{view.pods[0].meta.name});
    view.pods[0].phase = PodPhase::kFailed;
    EXPECT_TRUE(lost_pods(view, "resnet-a1", wall(2)).empty());
}

TEST(WasDisrupted, UsesPodConditionsAndTheJobControllersReason) {
    const TrainingJobView view = make_running_view();
    Job job = view.jobs[0];
    std::vector<Pod> pods = view.pods;
    EXPECT_FALSE(was_disrupted(job, pods));
    pods[1].disruption = "EvictionByEvictionAPI";
    EXPECT_TRUE(was_disrupted(job, pods));
    pods[1].meta.labels["batch.kubernetes.io/job-name"] = "another";
    EXPECT_FALSE(was_disrupted(job, pods));
    job.end = JobEnd{
        false,
        "PodFailurePolicy",
        "Pod a/b has condition DisruptionTarget matching FailJob rule at index 0",
        {}};
    EXPECT_TRUE(was_disrupted(job, {}));
}

TEST(WasDisrupted, IsTrueAfterARestartOfTheNode) {
    TrainingJobView view = make_running_view();
    ContainerState& trainer = view.pods[1].trainer;
    trainer.exit_code = 255;
    trainer.reason = "Error";
    EXPECT_FALSE(was_disrupted(view.jobs[0], view.pods)) << "the program itself may exit with 255";
    for (const char* reason : {"Unknown", "ContainerStatusUnknown"}) {
        trainer.reason = reason;
        EXPECT_TRUE(was_disrupted(view.jobs[0], view.pods)) << reason;
    }
    view.pods[0].trainer.exit_code = 143;
    view.pods[0].trainer.reason = "Error";
    EXPECT_EQ(
        failure_of(view.jobs[0], view.pods),
        fmt::format(
            "pod {} ended when its node {} restarted.",
            view.pods[1].meta.name,
            view.pods[1].node_name));
    trainer.exit_code.reset();
    EXPECT_FALSE(was_disrupted(view.jobs[0], view.pods)) << "the Job has not ended";
}

TEST(FailureOf, NamesTheLowestRankThatFailed) {
    TrainingJobView view = make_running_view();
    std::swap(view.pods[0], view.pods[1]);
    for (Pod& pod : view.pods) {
        pod.trainer.exit_code = 137;
        pod.trainer.reason = "OOMKilled";
    }
    EXPECT_EQ(
        failure_of(view.jobs[0], view.pods),
        "rank 0 (pod resnet-a1-0-xyzab) exited with code 137 (OOMKilled).");
    view.jobs[0].end = JobEnd{false, "BackoffLimitExceeded", "it failed", {}};
    EXPECT_EQ(failure_of(view.jobs[0], {}), "it failed.");
    view.jobs[0].end.reset();
    EXPECT_EQ(failure_of(view.jobs[0], {}), "the Job does not say why.");
}

TEST(FailureOf, QuotesTheLastLineOfATrainer) {
    TrainingJobView view = make_running_view();
    ContainerState& trainer = view.pods[0].trainer;
    trainer.exit_code = 1;
    trainer.reason = "Error";
    const auto told = [&](const std::string& message) {
        trainer.message = message;
        return failure_of(view.jobs[0], view.pods);
    };
    const std::string start = "rank 0 (pod resnet-a1-0-xyzab) exited with code 1 (Error)";
    EXPECT_EQ(
        told("Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'loss'\n \n"),
        start + ": \"KeyError: 'loss'\".");
    EXPECT_EQ(told("\r\n\t\n"), start + ".");
    const std::string umlauts = told(std::string(239, 'x') + "\xc3\xa4 and more");
    EXPECT_EQ(umlauts, start + ": \"" + std::string(239, 'x') + "...\".") << "no half character";
}

TEST(WhatPodsWaitFor, QuotesSchedulerAndKubelet) {
    TrainingJobView view = make_running_view();
    EXPECT_EQ(what_pods_wait_for(view.pods, "resnet-a1"), "");
    view.pods[1].trainer.waiting_reason = "ImagePullBackOff";
    view.pods[1].trainer.message = "no such image";
    EXPECT_EQ(
        what_pods_wait_for(view.pods, "resnet-a1"),
        "Pod resnet-a1-1-xyzab waits: ImagePullBackOff: no such image");
    view.pods[0].unschedulable_message = "0/2 nodes are available";
    EXPECT_EQ(
        what_pods_wait_for(view.pods, "resnet-a1"),
        "Pod resnet-a1-0-xyzab waits for a node: 0/2 nodes are available");
}

TEST(WhatPodsWaitFor, NamesAFailingS3Endpoint) {
    TrainingJobView view = make_running_view();
    view.pods[0].trainer.waiting_reason = "PodInitializing";
    view.pods[0].s3.waiting_reason = "CrashLoopBackOff";
    EXPECT_EQ(
        what_pods_wait_for(view.pods, "resnet-a1"),
        "Pod resnet-a1-0-xyzab waits: CrashLoopBackOff.");
}

TEST(WhatPodsWaitFor, IsEmptyDuringANormalStart) {
    TrainingJobView view = make_running_view();
    view.pods[0].trainer.waiting_reason = "PodInitializing";
    view.pods[1].sidecar.waiting_reason = "ContainerCreating";
    EXPECT_EQ(what_pods_wait_for(view.pods, "resnet-a1"), "");
}

}  // namespace
}  // namespace stoker::control
