#include "operator/core/lifecycle/lifecycle.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"
#include "tests/unit/operator/core/write_down.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

template <class T>
const T* only(const Lifecycle& lifecycle) {
    EXPECT_EQ(lifecycle.actions.size(), 1U) << lifecycle.message;
    return lifecycle.actions.empty() ? nullptr : std::get_if<T>(&lifecycle.actions.front());
}

JobEnd failure() {
    return {false, "PodFailurePolicy", "exit code 1 matching FailJob rule at index 1", wall(50)};
}

TEST(Lifecycle, StartsWithAServiceAndTheFirstAttempt) {
    const Lifecycle lifecycle = decide_lifecycle(make_view(), moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kStarting);
    EXPECT_EQ(lifecycle.status.attempt, 1);
    ASSERT_EQ(lifecycle.actions.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<CreateService>(lifecycle.actions[0]));
    EXPECT_EQ(std::get<CreateJob>(lifecycle.actions[1]).job.meta.name, "resnet-a1");
}

TEST(Lifecycle, RunsWhenEveryRankIsReady) {
    TrainingJobView view = make_running_view();
    view.jobs[0].ready = 1;
    view.pods[1].phase = PodPhase::kPending;
    view.pods[1].ready = false;
    view.pods[1].unschedulable_message = "no GPU";
    Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kStarting);
    EXPECT_EQ(
        lifecycle.message, "1 of 2 ranks run. Pod resnet-a1-1-xyzab waits for a node: no GPU");
    view.jobs[0].ready = 2;
    lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kRunning);
    EXPECT_TRUE(lifecycle.actions.empty());
    view.jobs[0].ready = 1;
    view.jobs[0].succeeded = 1;
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kRunning);
}

TEST(Lifecycle, RunsWhileASucceededTrainerWaitsForItsSidecar) {
    TrainingJobView view = make_running_view();
    view.jobs[0].ready = 1;
    view.pods[1].ready = false;
    view.pods[1].trainer.exit_code = 0;
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kRunning);
    view.pods[1].trainer.exit_code = 1;
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kStarting);
}

TEST(Lifecycle, WaitsForADatasetAndNamesIt) {
    TrainingJobView view = make_view();
    view.datasets = resolve_datasets(view.job, {});
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kWaiting);
    EXPECT_NE(lifecycle.message.find("Dataset imagenet does not exist"), std::string::npos);
    EXPECT_TRUE(lifecycle.actions.empty());
    EXPECT_EQ(lifecycle.status.attempt, 0);
}

TEST(Lifecycle, ContinuesWhenItsDatasetIsDeleted) {
    TrainingJobView view = make_running_view();
    view.datasets = resolve_datasets(view.job, {});
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kRunning);
}

// The job of the view names a Dataset of another namespace.
TrainingJobView naming_a_foreign_dataset(TrainingJobView view) {
    view.job.spec.datasets[0].dataset_ref_namespace = "data";
    Dataset dataset = make_dataset();
    dataset.meta.ns = "data";
    view.datasets = resolve_datasets(view.job, {dataset}, TextMap{});
    return view;
}

TEST(Lifecycle, WaitsForSharingButContinuesARunningAttempt) {
    const Lifecycle waiting = decide_lifecycle(naming_a_foreign_dataset(make_view()), moment(10));
    EXPECT_EQ(waiting.state, JobState::kWaiting);
    EXPECT_NE(waiting.message.find("is not shared with namespace team"), std::string::npos);
    EXPECT_TRUE(waiting.actions.empty());
    const Lifecycle running =
        decide_lifecycle(naming_a_foreign_dataset(make_running_view()), moment(10));
    EXPECT_EQ(running.state, JobState::kRunning);
    EXPECT_TRUE(running.actions.empty());
}

TEST(Lifecycle, WaitsForAPoolOnlyIfTheJobNamesIt) {
    TrainingJobView view = make_view();
    view.pool = resolve_pool(view.job, {}, {});
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kStarting);
    view.job.spec.cache.pool_ref = "nvme";
    view.pool = resolve_pool(view.job, {}, {});
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kWaiting);
}

TEST(Lifecycle, ReportsAnInvalidSpecAndTakesNoAction) {
    TrainingJobView view = make_view();
    view.job.spec.trainer.node_count = 0;
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kInvalid);
    EXPECT_EQ(lifecycle.message, "spec.trainer.numNodes: numNodes must be 1 to 10000");
    EXPECT_TRUE(lifecycle.actions.empty());
}

TEST(Lifecycle, SuspendsAJobWithAnInvalidSpec) {
    TrainingJobView view = make_running_view();
    view.job.spec.trainer.node_count = 0;
    EXPECT_TRUE(decide_lifecycle(view, moment(10)).actions.empty()) << "running pods continue";
    view.job.spec.suspend = true;
    EXPECT_NE(only<DeleteJob>(decide_lifecycle(view, moment(11))), nullptr);
    view.jobs[0].end = failure();
    EXPECT_TRUE(decide_lifecycle(view, moment(12)).actions.empty())
        << "the Job's end is judged later";
}

TEST(Lifecycle, LeavesObjectsOfOtherOwnersAlone) {
    TrainingJobView view = make_view();
    view.jobs = {make_job(view, 1)};
    view.jobs[0].meta.owners.clear();
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kNameTaken);
    view.jobs[0].meta.owners = {{"stoker.dev/v1alpha1", "TrainingJob", "resnet", "old-uid", true}};
    const Lifecycle leaving = decide_lifecycle(view, moment(10));
    EXPECT_EQ(leaving.state, JobState::kWaiting);
    EXPECT_EQ(leaving.message, "Job resnet-a1 of an earlier job is ending.");
    view.jobs.clear();
    view.service = make_service(view);
    view.service->owners.clear();
    const Lifecycle taken = decide_lifecycle(view, moment(10));
    EXPECT_EQ(taken.state, JobState::kNameTaken);
    EXPECT_NE(taken.message.find("Service resnet-ranks"), std::string::npos);
}

TEST(Lifecycle, CompletesWithItsJob) {
    TrainingJobView view = make_running_view();
    view.jobs[0].end = JobEnd{true, "CompletionsReached", "", wall(77)};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(80));
    EXPECT_EQ(lifecycle.state, JobState::kComplete);
    EXPECT_EQ(lifecycle.status.completion_time, wall(77));
    EXPECT_TRUE(lifecycle.actions.empty());
    write_down(lifecycle, view);
    view.jobs.clear();
    EXPECT_EQ(decide_lifecycle(view, moment(90)).state, JobState::kComplete) << "for good";
}

TEST(Lifecycle, RestartsAllRanksTogetherAsTheNextAttempt) {
    TrainingJobView view = make_running_view();
    view.jobs[0].end = failure();
    view.pods[1].trainer.exit_code = 1;
    view.pods[1].trainer.reason = "Error";
    Lifecycle lifecycle = decide_lifecycle(view, moment(60));
    EXPECT_EQ(lifecycle.state, JobState::kRestarting);
    EXPECT_EQ(lifecycle.status.attempt, 2);
    EXPECT_EQ(lifecycle.status.restarts, 1);
    EXPECT_EQ(
        lifecycle.message,
        "Attempt 1 failed: rank 1 (pod resnet-a1-1-xyzab) exited with code 1 (Error). All ranks "
        "start again.");
    ASSERT_NE(only<DeleteJob>(lifecycle), nullptr);
    EXPECT_EQ(only<DeleteJob>(lifecycle)->uid, "uid-resnet-a1");

    write_down(lifecycle, view);
    view.jobs[0].meta.deleting_since = wall(60);
    lifecycle = decide_lifecycle(view, moment(61));
    EXPECT_EQ(lifecycle.state, JobState::kRestarting);
    EXPECT_TRUE(lifecycle.actions.empty()) << "the old pods are still there";

    view.jobs.clear();
    view.pods.clear();
    lifecycle = decide_lifecycle(view, moment(62));
    ASSERT_NE(only<CreateJob>(lifecycle), nullptr);
    EXPECT_EQ(only<CreateJob>(lifecycle)->job.meta.name, "resnet-a2");
}

TEST(Lifecycle, RepeatsALostDeletionOfAnOlderJob) {
    TrainingJobView view = make_running_view();
    view.job.status.attempt = 2;
    const Lifecycle lifecycle = decide_lifecycle(view, moment(60));
    ASSERT_NE(only<DeleteJob>(lifecycle), nullptr);
    EXPECT_EQ(only<DeleteJob>(lifecycle)->name, "resnet-a1");
}

TEST(Lifecycle, FailsWhenNoRestartIsLeft) {
    TrainingJobView view = make_running_view(3);
    view.job.spec.run_policy.backoff_limit = 2;
    view.jobs[0].end = failure();
    const Lifecycle lifecycle = decide_lifecycle(view, moment(60));
    EXPECT_EQ(lifecycle.state, JobState::kFailed);
    EXPECT_EQ(lifecycle.failure, "BackoffLimitExceeded");
    EXPECT_EQ(lifecycle.status.attempt, 3);
    EXPECT_TRUE(lifecycle.actions.empty()) << "the failed pods stay for their logs";
    EXPECT_NE(lifecycle.message.find("No restart is left (backoffLimit 2)."), std::string::npos);
}

TEST(Lifecycle, DoesNotCountDisruptions) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.backoff_limit = 0;
    view.jobs[0].end = failure();
    view.pods[0].disruption = "EvictionByEvictionAPI";
    const Lifecycle lifecycle = decide_lifecycle(view, moment(60));
    EXPECT_EQ(lifecycle.state, JobState::kRestarting);
    EXPECT_EQ(lifecycle.status.restarts, 0);
    EXPECT_EQ(lifecycle.status.attempt, 2);
}

TEST(Lifecycle, PausesBeforeTheSecondRestartAndLater) {
    EXPECT_EQ(restart_delay(0), seconds{0});
    EXPECT_EQ(restart_delay(1), seconds{0});
    EXPECT_EQ(restart_delay(2), seconds{10});
    EXPECT_EQ(restart_delay(3), seconds{20});
    EXPECT_EQ(restart_delay(7), seconds{320});
    EXPECT_EQ(restart_delay(8), seconds{360});
    EXPECT_EQ(restart_delay(1000), seconds{360});
    TrainingJobView view = make_view();
    view.service = make_service(view);
    view.job.status.attempt = 3;
    view.job.status.restarts = 2;
    view.job.status.last_restart_time = wall(100);
    const Lifecycle early = decide_lifecycle(view, moment(103));
    EXPECT_EQ(early.state, JobState::kRestarting);
    EXPECT_EQ(early.wake_after, seconds{7});
    EXPECT_TRUE(early.actions.empty());
    EXPECT_NE(only<CreateJob>(decide_lifecycle(view, moment(110))), nullptr);
}

TEST(Lifecycle, RestartsWhenANodeIsLostWithoutWaitingForItsPod) {
    TrainingJobView view = make_running_view();
    view.pods[1].meta.deleting_since = wall(100);
    view.nodes[1].ready = false;
    view.nodes[1].not_ready_since = wall(90);
    EXPECT_EQ(decide_lifecycle(view, moment(149)).state, JobState::kRunning);
    Lifecycle lifecycle = decide_lifecycle(view, moment(150));
    EXPECT_EQ(lifecycle.state, JobState::kRestarting);
    EXPECT_EQ(lifecycle.status.restarts, 0);
    write_down(lifecycle, view);
    view.jobs[0].meta.deleting_since = wall(150);
    view.pods.erase(view.pods.begin());  // the pod on the healthy node has ended
    lifecycle = decide_lifecycle(view, moment(151));
    ASSERT_NE(only<CreateJob>(lifecycle), nullptr);
    EXPECT_EQ(only<CreateJob>(lifecycle)->job.meta.name, "resnet-a2");
}

TEST(Lifecycle, AppliesTheDeadlineOverAllAttempts) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.active_deadline_seconds = 100;
    const Lifecycle before = decide_lifecycle(view, moment(99));
    EXPECT_EQ(before.state, JobState::kRunning);
    EXPECT_EQ(before.wake_after, seconds{1});
    const Lifecycle lifecycle = decide_lifecycle(view, moment(100));
    EXPECT_EQ(lifecycle.state, JobState::kFailed);
    EXPECT_EQ(lifecycle.failure, "DeadlineExceeded");
    EXPECT_NE(only<DeleteJob>(lifecycle), nullptr);
    view.jobs[0].end = JobEnd{true, "", "", wall(98)};
    EXPECT_EQ(decide_lifecycle(view, moment(200)).state, JobState::kComplete)
        << "the Job ended before its deadline";
    view.jobs.clear();
    view.pods.clear();
    view.job.status.attempt = 2;
    view.job.status.active_since = wall(0);
    const Lifecycle second = decide_lifecycle(view, moment(70));
    EXPECT_EQ(only<CreateJob>(second)->job.active_deadline_seconds, 30);
}

TEST(Lifecycle, AcceptsTheJobControllersDeadlineFailure) {
    TrainingJobView view = make_running_view();
    view.jobs[0].end = JobEnd{false, "DeadlineExceeded", "too long", wall(5)};
    EXPECT_EQ(decide_lifecycle(view, moment(6)).failure, "DeadlineExceeded");
}

TEST(Lifecycle, RemembersWhenItFirstRan) {
    TrainingJobView view = make_running_view();
    view.job.status.start_time.reset();
    view.jobs[0].start_time = wall(42);
    EXPECT_EQ(decide_lifecycle(view, moment(50)).status.start_time, wall(42));
    view.job.status.start_time = wall(7);
    EXPECT_EQ(decide_lifecycle(view, moment(50)).status.start_time, wall(7));
}

TEST(Lifecycle, StopsWhileSuspendedAndResumesTheSameAttempt) {
    TrainingJobView view = make_running_view(2);
    view.job.spec.suspend = true;
    view.jobs[0].meta.resource_version = "7";
    const Lifecycle stopping = decide_lifecycle(view, moment(10));
    EXPECT_EQ(stopping.state, JobState::kSuspended);
    EXPECT_EQ(*only<DeleteJob>(stopping), (DeleteJob{"resnet-a2", "uid-resnet-a2", "7"}));
    view.jobs.clear();
    view.pods.clear();
    EXPECT_TRUE(decide_lifecycle(view, moment(11)).actions.empty());
    view.job.spec.suspend = false;
    view.job.spec.trainer.image = "train:2";
    view.job.spec.trainer.node_count = 3;
    const Lifecycle again = decide_lifecycle(view, moment(12));
    EXPECT_EQ(again.state, JobState::kStarting);
    EXPECT_EQ(again.status.attempt, 2);
    EXPECT_EQ(again.status.restarts, 1);
    ASSERT_NE(only<CreateJob>(again), nullptr);
    EXPECT_EQ(only<CreateJob>(again)->job.meta.name, "resnet-a2");
    EXPECT_EQ(only<CreateJob>(again)->job.pod.trainer.image, "train:2");
    EXPECT_EQ(only<CreateJob>(again)->job.node_count, 3);
}

TEST(Lifecycle, TrainerExitDuringSuspensionIsNotAFailure) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.backoff_limit = 0;
    view.job.spec.suspend = true;
    view.jobs[0].meta.deleting_since = wall(10);
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 143", wall(11)};
    view.pods[0].phase = PodPhase::kFailed;
    view.pods[0].trainer.exit_code = 143;
    EXPECT_EQ(decide_lifecycle(view, moment(12)).state, JobState::kSuspended);
    EXPECT_TRUE(decide_lifecycle(view, moment(12)).actions.empty());
    view.job.spec.suspend = false;
    EXPECT_EQ(decide_lifecycle(view, moment(12)).state, JobState::kRestarting);
}

TEST(Lifecycle, FailureBeforeSuspensionCounts) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.backoff_limit = 0;
    view.job.spec.suspend = true;
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(9)};
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kFailed);
}

TEST(Lifecycle, ResumeWaitsUntilTheOldPodsAreGone) {
    TrainingJobView view = make_running_view();
    view.jobs[0].meta.deleting_since = wall(10);
    const Lifecycle waiting = decide_lifecycle(view, moment(12));
    EXPECT_EQ(waiting.state, JobState::kRestarting);
    EXPECT_TRUE(waiting.actions.empty());
    view.jobs.clear();
    EXPECT_TRUE(decide_lifecycle(view, moment(13)).actions.empty())
        << "the watch of pods is behind";
    for (Pod& pod : view.pods) {
        pod.phase = PodPhase::kFailed;
        pod.meta.deleting_since = wall(10);
    }
    EXPECT_TRUE(decide_lifecycle(view, moment(13)).actions.empty());
    view.pods.clear();
    const Lifecycle again = decide_lifecycle(view, moment(14));
    EXPECT_EQ(again.status.attempt, 1);
    EXPECT_NE(only<CreateJob>(again), nullptr);
}

TEST(Lifecycle, SuspensionStopsJobsOfOlderAttempts) {
    TrainingJobView view = make_running_view(2);
    view.jobs = {make_job(view, 1)};
    view.job.spec.suspend = true;
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kSuspended);
    ASSERT_NE(only<DeleteJob>(lifecycle), nullptr);
    EXPECT_EQ(only<DeleteJob>(lifecycle)->name, "resnet-a1");
}

TEST(Lifecycle, DoesNotStartASuspendedJob) {
    TrainingJobView view = make_view();
    view.job.spec.suspend = true;
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kSuspended);
    EXPECT_TRUE(lifecycle.actions.empty());
}

TEST(Lifecycle, DeletesItselfAfterItsTtl) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.ttl_seconds_after_finished = 30;
    view.jobs[0].end = JobEnd{true, "", "", wall(100)};
    write_down(decide_lifecycle(view, moment(101)), view);
    const Lifecycle waiting = decide_lifecycle(view, moment(110));
    EXPECT_EQ(waiting.wake_after, seconds{20});
    EXPECT_TRUE(waiting.actions.empty());
    const Lifecycle over = decide_lifecycle(view, moment(130));
    ASSERT_NE(only<DeleteTrainingJob>(over), nullptr);
    EXPECT_EQ(only<DeleteTrainingJob>(over)->uid, "uid-resnet");
}

TEST(Lifecycle, RecreatesADeletedJob) {
    TrainingJobView view = make_running_view();
    view.jobs.clear();
    view.pods.clear();
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    ASSERT_NE(only<CreateJob>(lifecycle), nullptr);
    EXPECT_EQ(only<CreateJob>(lifecycle)->job.meta.name, "resnet-a1");
    EXPECT_EQ(lifecycle.status.restarts, 0);
}

TEST(Lifecycle, PrefersNodesThatHoldTheData) {
    TrainingJobView view = make_view();
    view.holdings = {{"nvme", "n2", "uid-imagenet", gib(3), {}}};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    const JobManifest& job = std::get<CreateJob>(lifecycle.actions.at(1)).job;
    EXPECT_EQ(job.pod.preferred_nodes, (std::vector<PreferredNode>{{"n2", 100}}));
}

TEST(Lifecycle, FailsWhenAttemptNumbersRunOut) {
    TrainingJobView view = make_running_view(kAttemptMax);
    view.job.status.restarts = 0;
    view.jobs[0].end = failure();
    EXPECT_EQ(decide_lifecycle(view, moment(10)).failure, "AttemptsExhausted");
}

TEST(Lifecycle, ReportsFieldsUnknownToTheApiServerAndRetries) {
    TrainingJobView view = make_view();
    view.diagnosis = {"spec.podTemplate.spec.affinity.x: unknown field", true};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kInvalid);
    EXPECT_EQ(lifecycle.message, "spec.podTemplate.spec.affinity.x: unknown field");
    EXPECT_TRUE(lifecycle.blocked);
    EXPECT_EQ(lifecycle.actions.size(), 2U) << "the spec may have been mended";
}

TEST(Lifecycle, RefusesAVolumeInTheDirectoryOfAPool) {
    TrainingJobView view = make_view();
    view.pool_paths = {"/mnt/nvme"};
    view.job.spec.pod_template.host_paths = {{"peek", "/mnt/nvme/other"}};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kInvalid);
    EXPECT_NE(lifecycle.message.find("spec.podTemplate.spec.volumes[peek]"), std::string::npos);
    TrainingJobView running = make_running_view();
    running.pool_paths = view.pool_paths;
    running.job.spec.pod_template.host_paths = view.job.spec.pod_template.host_paths;
    EXPECT_EQ(decide_lifecycle(running, moment(10)).state, JobState::kRunning)
        << "a pool that is made later stops nothing";
}

}  // namespace
}  // namespace stoker::control
