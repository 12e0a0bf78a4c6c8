// Deadlines of a TrainingJob, its pauses before restarts, and its ttlSecondsAfterFinished.

#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "operator/core/plan_training_job.h"
#include "tests/unit/operator/core/fake_kueue.h"
#include "tests/unit/operator/core/make_training_job.h"
#include "tests/unit/operator/core/write_down.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

TEST(LifecycleTime, LimitsTooLargeForADurationNeverExpire) {
    for (const std::int64_t limit : {9'999'999'999, std::int64_t{1} << 53U, INT64_MAX}) {
        TrainingJobView view = make_running_view();
        view.job.spec.run_policy.active_deadline_seconds = limit;
        view.job.spec.run_policy.ttl_seconds_after_finished = limit;
        const Lifecycle running = decide_lifecycle(view, moment(1'800'000'000));
        EXPECT_EQ(running.state, JobState::kRunning) << limit << ": " << running.message;
        EXPECT_LE(*running.wake_after, std::chrono::hours{24});
        view.jobs[0].end = JobEnd{true, "", "", wall(1'800'000'000)};
        write_down(decide_lifecycle(view, moment(1'800'000'000)), view);
        const Lifecycle finished = decide_lifecycle(view, moment(1'800'000'100));
        EXPECT_EQ(finished.state, JobState::kComplete);
        EXPECT_TRUE(finished.actions.empty()) << "the TrainingJob was deleted";
    }
}

TEST(LifecycleTime, ClampsTheJobsDeadline) {
    TrainingJobView view = make_view();
    view.job.spec.run_policy.active_deadline_seconds = INT64_MAX;
    const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
    ASSERT_EQ(lifecycle.actions.size(), 2U);
    EXPECT_EQ(
        std::get<CreateJob>(lifecycle.actions[1]).job.active_deadline_seconds,
        std::numeric_limits<std::int32_t>::max());
}

// A running job with a deadline of 100 s.
TrainingJobView view_with_deadline() {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.active_deadline_seconds = 100;
    return view;
}

TEST(LifecycleTime, QueuedTimeDoesNotCount) {
    TrainingJobView view = make_admitted_view();
    view.job.spec.run_policy.active_deadline_seconds = 100;
    write_down(decide_lifecycle(view, moment(60)), view);
    const std::vector<Job> jobs = std::exchange(view.jobs, {});
    const std::vector<Pod> pods = std::exchange(view.pods, {});
    evict(view.kueue, "Preempted", 70);
    write_down(decide_lifecycle(view, moment(70)), view);
    EXPECT_EQ(view.job.status.active_seconds, 70);
    EXPECT_EQ(decide_lifecycle(view, moment(5000)).state, JobState::kQueued);
    admit(view.kueue, 5990);
    view.jobs = jobs;
    view.jobs[0].start_time = wall(6000);
    view.pods = pods;
    const Lifecycle running = decide_lifecycle(view, moment(6029));
    EXPECT_EQ(running.state, JobState::kRunning);
    EXPECT_EQ(running.wake_after, seconds{1});
    write_down(running, view);
    EXPECT_EQ(decide_lifecycle(view, moment(6030)).state, JobState::kFailed);
}

TEST(LifecycleTime, SuspendedTimeDoesNotCount) {
    TrainingJobView view = view_with_deadline();
    write_down(decide_lifecycle(view, moment(50)), view);
    view.job.spec.suspend = true;
    view.job.status = plan_training_job(view, moment(50)).status;
    // The pods terminate slowly, or the deletion was lost.
    for (const bool leaves : {false, true}) {
        view.jobs[0].meta.deleting_since = leaves ? std::optional(wall(50)) : std::nullopt;
        const TrainingJobStatus status = plan_training_job(view, moment(9999)).status;
        EXPECT_EQ(find_condition(status.conditions, "Suspended")->reason, "Suspended");
        EXPECT_EQ(status.active_seconds, 50);
        EXPECT_EQ(status.active_since, std::nullopt);
    }
    const std::vector<Job> jobs = std::exchange(view.jobs, {});
    const std::vector<Pod> pods = std::exchange(view.pods, {});
    view.job.status = plan_training_job(view, moment(9999)).status;
    EXPECT_EQ(view.job.status.active_seconds, 50);
    view.job.spec.suspend = false;
    const Lifecycle again = decide_lifecycle(view, moment(10000));
    ASSERT_EQ(again.actions.size(), 1U);
    EXPECT_EQ(std::get<CreateJob>(again.actions[0]).job.active_deadline_seconds, 50);
    view.job.status = plan_training_job(view, moment(10000)).status;
    view.jobs = jobs;
    view.jobs[0].meta.deleting_since.reset();
    view.jobs[0].start_time = wall(10001);
    view.pods = pods;
    EXPECT_EQ(decide_lifecycle(view, moment(10050)).state, JobState::kRunning);
    EXPECT_EQ(decide_lifecycle(view, moment(10051)).failure, "DeadlineExceeded");
}

TEST(LifecycleTime, IfTheJobOutlivesASuspensionActiveTimeRunsFromTheSuspensionsEnd) {
    TrainingJobView view = view_with_deadline();
    write_down(decide_lifecycle(view, moment(50)), view);
    view.job.spec.suspend = true;
    view.job.status = plan_training_job(view, moment(50)).status;
    view.job.spec.suspend = false;  // before the deletion reached the API server
    view.job.status = plan_training_job(view, moment(70)).status;
    view.job.status = plan_training_job(view, moment(80)).status;
    EXPECT_EQ(decide_lifecycle(view, moment(119)).state, JobState::kRunning);
    EXPECT_EQ(decide_lifecycle(view, moment(120)).failure, "DeadlineExceeded");
}

TEST(LifecycleTime, SumsTimeOfAllAttempts) {
    TrainingJobView view = view_with_deadline();
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(50)};
    write_down(decide_lifecycle(view, moment(60)), view);
    EXPECT_EQ(view.job.status.active_since, wall(0)) << "between attempts the time runs on";
    view.jobs.clear();
    view.pods.clear();
    const Lifecycle second = decide_lifecycle(view, moment(80));
    ASSERT_EQ(second.actions.size(), 1U);
    EXPECT_EQ(std::get<CreateJob>(second.actions[0]).job.active_deadline_seconds, 20);
    write_down(second, view);
    EXPECT_EQ(decide_lifecycle(view, moment(100)).failure, "DeadlineExceeded");
}

TEST(LifecycleTime, ActiveTimeOfAFailedJobStops) {
    TrainingJobView view = view_with_deadline();
    write_down(decide_lifecycle(view, moment(100)), view);
    EXPECT_EQ(view.job.status.active_seconds, 100);
    const Lifecycle later = decide_lifecycle(view, moment(500));
    EXPECT_EQ(active_time_of(later.status), (ActiveTime{100, std::nullopt}))
        << "the job's Job is still ending";
}

TEST(LifecycleTime, ClampsTheDeadlineOfAJobToWhatKubernetesAccepts) {
    TrainingJobView view = make_view();
    const auto deadline = [&](std::optional<std::int64_t> limit, std::int64_t spent) {
        view.job.spec.run_policy.active_deadline_seconds = limit;
        view.job.status.active_seconds = spent;
        const Lifecycle lifecycle = decide_lifecycle(view, moment(10));
        return std::get<CreateJob>(lifecycle.actions.at(1)).job.active_deadline_seconds;
    };
    EXPECT_EQ(deadline(60, 65), 1);
    EXPECT_EQ(deadline(100, 40), 60);
    EXPECT_EQ(deadline(INT64_MAX, 0), std::numeric_limits<std::int32_t>::max());
    EXPECT_EQ(deadline(std::nullopt, 0), std::nullopt);
}

// The wall clock of the operator that recorded the restart was an hour ahead.
TEST(LifecycleTime, PauseBeginsNowIfTheLastRestartIsInTheFuture) {
    TrainingJobView view = make_view();
    view.service = make_service(view);
    view.job.status.attempt = 2;
    view.job.status.restarts = 1;
    view.job.status.last_restart_time = wall(3700);
    EXPECT_EQ(decide_lifecycle(view, moment(100)).state, JobState::kStarting) << "no pause";
    view.job.status.restarts = 2;
    const Lifecycle paused = decide_lifecycle(view, moment(100));
    EXPECT_EQ(paused.wake_after, seconds{10});
    EXPECT_EQ(paused.status.last_restart_time, wall(100));
    write_down(paused, view);
    EXPECT_EQ(decide_lifecycle(view, moment(110)).state, JobState::kStarting);
}

}  // namespace
}  // namespace stoker::control
