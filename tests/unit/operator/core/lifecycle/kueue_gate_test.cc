// Tests a queued TrainingJob from entering the queue to its end.

#include "operator/core/lifecycle/kueue_gate.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/fake_kueue.h"
#include "tests/unit/operator/core/write_down.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

template <class T>
const T* only(const Lifecycle& lifecycle) {
    EXPECT_EQ(lifecycle.actions.size(), 1U) << lifecycle.message;
    return lifecycle.actions.empty() ? nullptr : std::get_if<T>(&lifecycle.actions.front());
}

ConditionStatus status_of(const Workload& workload, std::string_view type) {
    const Condition* found = find_condition(workload.conditions, type);
    return found == nullptr ? ConditionStatus::kUnknown : found->status;
}

JobEnd exit_143() {
    return {false, "PodFailurePolicy", "exit code 143 matching FailJob rule", wall(50)};
}

void remove_attempt(TrainingJobView& view) {
    view.jobs.clear();
    view.pods.clear();
}

TEST(KueueGate, EntersTheQueueWithoutAJob) {
    TrainingJobView view = make_queued_view();
    view.kueue.priority = {"high", "kueue.x-k8s.io/workloadpriorityclass", 1000};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    const auto* created = only<CreateWorkload>(lifecycle);
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->workload.meta.name, "trainingjob-resnet");
    EXPECT_EQ(created->workload.queue_name, "vision");
    EXPECT_EQ(created->workload.priority, view.kueue.priority);
    EXPECT_EQ(created->workload.pod_count, 2);
}

TEST(KueueGate, WaitsAndQuotesKueue) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    view.kueue.workload->conditions.clear();
    Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(lifecycle.message, "Kueue has not admitted the job yet.");
    say(*view.kueue.workload, "QuotaReserved", false, "Pending", "insufficient quota for cpu", 1);
    lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.message, "Kueue has not admitted the job yet: insufficient quota for cpu");
    EXPECT_TRUE(lifecycle.actions.empty());
    say(*view.kueue.workload, "QuotaReserved", true, "QuotaReserved", "", 1);
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kQueued)
        << "admission checks come after the reservation";
}

TEST(KueueGate, StartsOnTheFlavorsNodesOnceAdmitted) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kStarting);
    const auto* created = only<CreateJob>(lifecycle);
    ASSERT_NE(created, nullptr);
    EXPECT_TRUE(created->job.meta.labels.contains("stoker.dev/attempt"));
    EXPECT_FALSE(created->job.meta.labels.contains("kueue.x-k8s.io/queue-name"))
        << "otherwise Kueue would queue the Job, too";
    EXPECT_EQ(created->job.pod.node_selector.at("gpu"), "a100");
    EXPECT_EQ(created->job.pod.tolerations.size(), 1U);
}

TEST(KueueGate, AddsPodChangesOfAdmissionChecks) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    view.kueue.workload->check_placement.annotations["autoscaler/consume"] = "request-1";
    view.kueue.workload->check_placement.node_selector = {{"gpu", "other"}, {"zone", "a"}};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    const auto* created = only<CreateJob>(lifecycle);
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->job.pod.annotations.at("autoscaler/consume"), "request-1");
    EXPECT_EQ(created->job.pod.node_selector.at("gpu"), "a100");
    EXPECT_EQ(created->job.pod.node_selector.at("zone"), "a");
}

TEST(KueueGate, WaitsForAFlavorThatDoesNotExist) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    view.kueue.flavors.clear();
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(lifecycle.message, "ResourceFlavor a100 does not exist.");
    EXPECT_TRUE(lifecycle.wake_after);
    EXPECT_TRUE(lifecycle.actions.empty());
}

TEST(KueueGate, WaitsIfItsPriorityClassCannotBeRead) {
    TrainingJobView view = make_queued_view();
    view.kueue.trouble = "WorkloadPriorityClass high does not exist.";
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(lifecycle.message, view.kueue.trouble);
    EXPECT_TRUE(lifecycle.wake_after);
    EXPECT_TRUE(lifecycle.actions.empty());
}

TEST(KueueGate, WithoutKueueNewJobsWaitAndRunningJobsContinue) {
    TrainingJobView view = make_queued_view();
    view.kueue.installed = false;
    const Lifecycle waiting = decide_lifecycle(view, moment(10));
    EXPECT_EQ(waiting.state, JobState::kQueued);
    EXPECT_NE(waiting.message.find("not installed"), std::string::npos);
    EXPECT_TRUE(waiting.wake_after);
    EXPECT_TRUE(waiting.actions.empty());
    view = make_admitted_view();
    view.kueue = {};
    const Lifecycle running = decide_lifecycle(view, moment(10));
    EXPECT_EQ(running.state, JobState::kRunning);
    EXPECT_TRUE(running.actions.empty());
}

TEST(KueueGate, LeavesForeignWorkloadsAlone) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    view.kueue.workload->meta.owners[0].uid = "another";
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(lifecycle.message, "Workload trainingjob-resnet belongs to somebody else.");
    EXPECT_TRUE(lifecycle.actions.empty());
}

TEST(KueueGate, ReportsPodsReadyToKueueOnce) {
    TrainingJobView view = make_admitted_view();
    std::erase_if(view.kueue.workload->conditions, [](const Condition& condition) {
        return condition.type == "PodsReady";
    });
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    const auto* told = only<TellWorkload>(lifecycle);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->condition.type, "PodsReady");
    EXPECT_EQ(told->condition.status, ConditionStatus::kTrue);
    set_condition(view.kueue.workload->conditions, told->condition);
    EXPECT_TRUE(decide_lifecycle(view, moment(11)).actions.empty());
    view.jobs[0].ready = 1;
    view.pods[1].ready = false;
    EXPECT_TRUE(decide_lifecycle(view, moment(12)).actions.empty())
        << "the condition stays, as in Kueue";
}

TEST(KueueGate, EvictionStopsPodsThenReleasesQuota) {
    TrainingJobView view = make_admitted_view();
    evict(view.kueue, "Preempted", 40);
    const Lifecycle stopping = decide_lifecycle(view, moment(41));
    EXPECT_EQ(stopping.state, JobState::kQueued);
    EXPECT_EQ(
        stopping.message,
        "Kueue has evicted the job (Preempted): Preempted to accommodate another.");
    EXPECT_NE(only<DeleteJob>(stopping), nullptr);
    write_down(stopping, view);
    view.jobs[0].meta.deleting_since = wall(41);
    EXPECT_TRUE(decide_lifecycle(view, moment(42)).actions.empty())
        << "the pods still use the quota";
    view.jobs.clear();
    EXPECT_TRUE(decide_lifecycle(view, moment(42)).actions.empty());
    view.pods.clear();
    const Lifecycle gone = decide_lifecycle(view, moment(43));
    EXPECT_EQ(gone.state, JobState::kQueued);
    const auto* released = only<ReleaseQuota>(gone);
    ASSERT_NE(released, nullptr);
    EXPECT_EQ(released->workload.admission, Json{});
    EXPECT_EQ(status_of(released->workload, "QuotaReserved"), ConditionStatus::kFalse);
    EXPECT_EQ(status_of(released->workload, "Admitted"), ConditionStatus::kFalse);
    EXPECT_EQ(status_of(released->workload, "Evicted"), ConditionStatus::kTrue);
    EXPECT_EQ(status_of(released->workload, "Requeued"), ConditionStatus::kTrue);
    EXPECT_EQ(released->workload.past_execution_seconds, 43);
}

// A job that an edit made invalid, or whose Service's name is taken, must still give up its quota
// when Kueue preempts it.
TEST(KueueGate, EvictionStopsPodsOfAnInvalidJob) {
    TrainingJobView invalid = make_admitted_view();
    invalid.job.spec.trainer.node_count = 0;
    TrainingJobView clashing = make_admitted_view();
    clashing.service->owners.clear();
    for (TrainingJobView* view : {&invalid, &clashing}) {
        EXPECT_TRUE(decide_lifecycle(*view, moment(39)).actions.empty()) << "running pods continue";
        evict(view->kueue, "Preempted", 40);
        const Lifecycle stopping = decide_lifecycle(*view, moment(41));
        EXPECT_NE(only<DeleteJob>(stopping), nullptr);
        EXPECT_TRUE(stopping.wake_after);
        remove_attempt(*view);
        EXPECT_NE(only<DeleteWorkload>(decide_lifecycle(*view, moment(42))), nullptr);
    }
}

TEST(KueueGate, OnlyPreemptedJobsQueueAgainAtOnce) {
    TrainingJobView view = make_admitted_view();
    remove_attempt(view);
    view.kueue.workload->has_checks = true;
    evict(view.kueue, "Deactivated", 40);
    const Lifecycle lifecycle = decide_lifecycle(view, moment(43));
    const auto* released = only<ReleaseQuota>(lifecycle);
    ASSERT_NE(released, nullptr);
    EXPECT_EQ(status_of(released->workload, "Requeued"), ConditionStatus::kFalse);
    EXPECT_EQ(
        find_condition(released->workload.conditions, "Admitted")->reason,
        "NoReservationUnsatisfiedChecks");
}

TEST(KueueGate, TrainerExitDuringEvictionIsNotAFailure) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.run_policy.backoff_limit = 0;
    evict(view.kueue, "Preempted", 40);
    view.jobs[0].meta.deleting_since = wall(41);
    view.jobs[0].end = exit_143();
    for (Pod& pod : view.pods) {
        pod.phase = PodPhase::kFailed;
        pod.trainer.exit_code = 143;
    }
    const Lifecycle lifecycle = decide_lifecycle(view, moment(51));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(lifecycle.status.attempt, 1);
    EXPECT_EQ(lifecycle.status.restarts, 0);
}

TEST(KueueGate, FailureBeforeEvictionCounts) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.run_policy.backoff_limit = 0;
    evict(view.kueue, "Preempted", 60);
    view.jobs[0].end = {false, "PodFailurePolicy", "exit code 1", wall(50)};
    EXPECT_EQ(decide_lifecycle(view, moment(61)).state, JobState::kFailed);
}

TEST(KueueGate, SuccessDuringEvictionCounts) {
    TrainingJobView view = make_admitted_view();
    evict(view.kueue, "Preempted", 40);
    view.jobs[0].end = JobEnd{true, "", "", wall(41)};
    EXPECT_EQ(decide_lifecycle(view, moment(42)).state, JobState::kComplete);
}

TEST(KueueGate, ContinuesTheSameAttemptAfterReadmission) {
    TrainingJobView view = make_admitted_view(2);
    remove_attempt(view);
    evict(view.kueue, "Preempted", 40);
    const Lifecycle gone = decide_lifecycle(view, moment(43));
    const auto* released = only<ReleaseQuota>(gone);
    ASSERT_NE(released, nullptr);
    view.kueue.workload = released->workload;
    write_down(gone, view);
    const Lifecycle waiting = decide_lifecycle(view, moment(44));
    EXPECT_EQ(waiting.state, JobState::kQueued);
    const auto* told = only<TellWorkload>(waiting);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->condition.type, "PodsReady");
    EXPECT_EQ(told->condition.status, ConditionStatus::kFalse);
    set_condition(view.kueue.workload->conditions, told->condition);
    EXPECT_TRUE(decide_lifecycle(view, moment(45)).actions.empty());
    admit(view.kueue, 100);
    const Lifecycle again = decide_lifecycle(view, moment(101));
    EXPECT_EQ(again.status.attempt, 2);
    const auto* created = only<CreateJob>(again);
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->job.meta.name, "resnet-a2");
}

TEST(KueueGate, RestartKeepsTheReservation) {
    TrainingJobView view = make_admitted_view();
    view.jobs[0].end = {false, "PodFailurePolicy", "exit code 1", wall(50)};
    const Lifecycle restarting = decide_lifecycle(view, moment(51));
    EXPECT_EQ(restarting.state, JobState::kRestarting);
    EXPECT_NE(only<DeleteJob>(restarting), nullptr);
    write_down(restarting, view);
    remove_attempt(view);
    view.settings.sidecar_image = "sidecar:2";  // the operator was upgraded meanwhile
    const Lifecycle next = decide_lifecycle(view, moment(52));
    EXPECT_EQ(next.state, JobState::kStarting);
    const auto* created = only<CreateJob>(next);
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->job.meta.name, "resnet-a2");
}

TEST(KueueGate, QueuesAgainWhenPodRequirementsChange) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.trainer.resources.limits["nvidia.com/gpu"] = "8";
    EXPECT_TRUE(decide_lifecycle(view, moment(10)).actions.empty()) << "an attempt runs on";
    remove_attempt(view);
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_EQ(
        *only<DeleteWorkload>(lifecycle),
        (DeleteWorkload{"trainingjob-resnet", "uid-trainingjob-resnet"}));
    view.kueue.workload.reset();
    EXPECT_NE(only<CreateWorkload>(decide_lifecycle(view, moment(11))), nullptr);
}

TEST(KueueGate, SuspendedJobLeavesTheQueueOnceItsPodsAreGone) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.suspend = true;
    const Lifecycle stopping = decide_lifecycle(view, moment(10));
    EXPECT_EQ(stopping.state, JobState::kSuspended);
    EXPECT_NE(only<DeleteJob>(stopping), nullptr);
    view.jobs[0].meta.deleting_since = wall(10);
    view.jobs[0].end = exit_143();
    const Lifecycle dying = decide_lifecycle(view, moment(11));
    EXPECT_EQ(dying.state, JobState::kSuspended) << "exit code 143 is no failure here";
    EXPECT_TRUE(dying.actions.empty());
    remove_attempt(view);
    EXPECT_NE(only<DeleteWorkload>(decide_lifecycle(view, moment(12))), nullptr);
}

TEST(KueueGate, JobWaitingForADatasetHoldsNoQuota) {
    TrainingJobView view = make_admitted_view();
    view.datasets = resolve_datasets(view.job, {});
    EXPECT_EQ(decide_lifecycle(view, moment(10)).state, JobState::kRunning);
    remove_attempt(view);
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kWaiting);
    EXPECT_NE(only<DeleteWorkload>(lifecycle), nullptr);
}

TEST(KueueGate, ReportsTheEndAfterThePodsAreGone) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.run_policy.active_deadline_seconds = 100;
    const Lifecycle failed = decide_lifecycle(view, moment(100));
    EXPECT_EQ(failed.failure, "DeadlineExceeded");
    EXPECT_NE(only<DeleteJob>(failed), nullptr) << "its pods still run";
    write_down(failed, view);
    remove_attempt(view);
    const Lifecycle over = decide_lifecycle(view, moment(130));
    const auto* told = only<TellWorkload>(over);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->condition.type, "Finished");
    EXPECT_EQ(told->condition.reason, "Failed");
    set_condition(view.kueue.workload->conditions, told->condition);
    EXPECT_TRUE(decide_lifecycle(view, moment(131)).actions.empty());
}

TEST(KueueGate, SuccessFinishesTheWorkload) {
    TrainingJobView view = make_admitted_view();
    view.jobs[0].end = JobEnd{true, "", "", wall(100)};
    for (Pod& pod : view.pods) {
        pod.phase = PodPhase::kSucceeded;
    }
    const Lifecycle complete = decide_lifecycle(view, moment(101));
    EXPECT_EQ(complete.state, JobState::kComplete);
    const auto* told = only<TellWorkload>(complete);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->condition.reason, "Succeeded");
    EXPECT_EQ(told->condition.message, "All ranks succeeded in attempt 1.");
}

TEST(KueueGate, StopsAtOnceWhenItsWorkloadIsDeleted) {
    TrainingJobView view = make_admitted_view();
    view.kueue.workload.reset();
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kQueued);
    EXPECT_NE(only<DeleteJob>(lifecycle), nullptr);
}

TEST(KueueGate, JobWhoseQueueLabelIsRemovedKeepsRunningAndLeavesTheQueue) {
    TrainingJobView view = make_admitted_view();
    view.job.meta.labels[std::string{kQueueLabel}] = "";
    EXPECT_NE(only<DeleteWorkload>(decide_lifecycle(view, moment(10))), nullptr);
    view.job.meta.labels.clear();
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    EXPECT_EQ(lifecycle.state, JobState::kRunning);
    EXPECT_NE(only<DeleteWorkload>(lifecycle), nullptr);
}

TEST(KueueGate, ReplacesAJobThatKueueSuspendedTooEarly) {
    TrainingJobView view = make_admitted_view();
    view.jobs[0].suspend = true;
    EXPECT_NE(only<DeleteJob>(decide_lifecycle(view, moment(40))), nullptr);
    remove_attempt(view);
    const Lifecycle again = decide_lifecycle(view, moment(41));
    ASSERT_NE(only<CreateJob>(again), nullptr);
    EXPECT_EQ(only<CreateJob>(again)->job.meta.name, "resnet-a1");
}

TEST(KueueGate, PodsOnALostNodeHoldNoQuota) {
    TrainingJobView view = make_admitted_view();
    evict(view.kueue, "Preempted", 40);
    view.jobs[0].meta.deleting_since = wall(41);
    for (Pod& pod : view.pods) {
        pod.meta.deleting_since = wall(41);
    }
    view.nodes.clear();
    EXPECT_NE(only<ReleaseQuota>(decide_lifecycle(view, moment(200))), nullptr);
    admit(view.kueue, 210);
    const Lifecycle again = decide_lifecycle(view, moment(211));
    EXPECT_EQ(again.state, JobState::kRestarting) << "the old Job's name is not free yet";
    EXPECT_EQ(again.status.attempt, 2);
    EXPECT_EQ(again.status.restarts, 0);
}

TEST(KueueGate, StartsAnAttemptWithItsPlacementAndPreferredNodes) {
    TrainingJobView view = make_admitted_view(3);
    view.jobs.clear();
    view.pods.clear();
    view.holdings = {{"nvme", "n2", "uid-imagenet", gib(1), {}}};
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    ASSERT_EQ(lifecycle.state, JobState::kStarting) << lifecycle.message;
    const auto* created = std::get_if<CreateJob>(&lifecycle.actions.back());
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->job.meta.name, "resnet-a3");
    EXPECT_EQ(created->job.pod.preferred_nodes, (std::vector<PreferredNode>{{"n2", 100}}));
    EXPECT_EQ(created->job.pod.node_selector.at("gpu"), "a100");
    EXPECT_EQ(created->job.active_deadline_seconds, std::nullopt);
}

}  // namespace
}  // namespace stoker::control
