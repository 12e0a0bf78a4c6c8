#include "operator/core/status/judge_cache.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/fake_kueue.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// Reason of CacheAllocated if its status is Unknown; else empty.
std::string why_no_bytes(const TrainingJobView& view) {
    const Condition judged = judge_cache(view, decide_lifecycle(view, moment(2)), {}, moment(2));
    return judged.status == ConditionStatus::kUnknown ? judged.reason : "";
}

TEST(JudgeCache, ReportsWhyAnInactiveJobHasNoBytes) {
    TrainingJobView view = make_running_view();
    view.pods.clear();
    view.jobs.clear();
    view.job.spec.suspend = true;
    EXPECT_EQ(why_no_bytes(view), "Suspended");
    view.job.spec.suspend = false;
    view = make_queued_view();
    EXPECT_EQ(why_no_bytes(view), "Queued");
    JobAllocation waiting;
    waiting.reason = AllocationReason::kWaitingForPods;
    view.allocation = waiting;
    EXPECT_EQ(why_no_bytes(view), "Queued");
}

TEST(JudgeCache, WaitsForPodsOfAStartingJob) {
    EXPECT_EQ(why_no_bytes(make_view()), "WaitingForPods");
    TrainingJobView restarting = make_running_view();
    restarting.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(1)};
    EXPECT_EQ(why_no_bytes(restarting), "Restarting");
    TrainingJobView waiting = make_view();
    waiting.datasets = resolve_datasets(waiting.job, {});
    EXPECT_EQ(why_no_bytes(waiting), "Waiting");
}

}  // namespace
}  // namespace stoker::control
