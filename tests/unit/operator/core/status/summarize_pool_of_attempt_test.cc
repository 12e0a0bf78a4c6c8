// The pool of an attempt in the status, and grants that have ended.

#include <gtest/gtest.h>

#include "operator/core/status/summarize_training_job.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TrainingJobStatus status_at(const TrainingJobView& view, std::int64_t second) {
    const Lifecycle lifecycle = decide_lifecycle(view, moment(second));
    return summarize_training_job(view, lifecycle, moment(second));
}

TEST(SummarizePoolOfAttempt, RecordsThePoolOfAStartedAttempt) {
    TrainingJobView view = make_view();
    view.job.status = status_at(view, 1);
    EXPECT_EQ(view.job.status.attempt_pool, (AttemptPool{1, "nvme"}));
    view.pool = ResolvedPool{};
    EXPECT_EQ(status_at(view, 2).attempt_pool, (AttemptPool{1, ""}))
        << "the attempt's Job is built anew";
    view.jobs = {make_job(view, 1)};
    EXPECT_EQ(status_at(view, 3).attempt_pool, (AttemptPool{1, "nvme"}))
        << "the attempt's Job exists";
    view.job.spec.suspend = true;
    EXPECT_EQ(status_at(view, 4).attempt_pool, (AttemptPool{1, "nvme"}));
}

TEST(SummarizePoolOfAttempt, ResumedAttemptMayChooseWhileItsOldJobIsDeleted) {
    TrainingJobView view = make_running_view();
    view.job.status = status_at(view, 1);
    view.job.spec.suspend = true;
    view.job.status = status_at(view, 2);
    view.jobs[0].meta.deleting_since = wall(2);
    view.job.spec.suspend = false;
    view.job.status = status_at(view, 3);
    EXPECT_EQ(view.job.status.attempt, 1);
    EXPECT_EQ(view.job.status.attempt_pool, std::nullopt);
    view.jobs.clear();
    view.pods.clear();
    view.pool.name = "other";
    EXPECT_EQ(status_at(view, 4).attempt_pool, (AttemptPool{1, "other"}));
}

TEST(SummarizePoolOfAttempt, ClearsThePoolOfAnAttemptThatCannotStart) {
    TrainingJobView view = make_view();
    view.job.status = status_at(view, 1);
    view.diagnosis.words = "The API server refuses it: no.";
    EXPECT_EQ(status_at(view, 2).attempt_pool, std::nullopt);
}

TEST(SummarizePoolOfAttempt, ClearsThePoolOnRestart) {
    TrainingJobView view = make_running_view();
    view.job.status = status_at(view, 1);
    EXPECT_EQ(view.job.status.attempt_pool, (AttemptPool{1, "nvme"}));
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(5)};
    const TrainingJobStatus after = status_at(view, 6);
    EXPECT_EQ(after.attempt, 2);
    EXPECT_EQ(after.attempt_pool, std::nullopt) << "the second attempt may choose";
}

// A job whose status reports a grant of 3 GiB.
TrainingJobView granted_view() {
    TrainingJobView view = make_running_view();
    JobAllocation allocation;
    allocation.wanted = gib(4);
    allocation.granted = gib(3);
    allocation.reason = AllocationReason::kGranted;
    view.allocation = allocation;
    view.job.status = status_at(view, 1);
    EXPECT_EQ(view.job.status.columns.cache, "3Gi/4Gi");
    view.allocation.reset();
    return view;
}

TEST(SummarizePoolOfAttempt, ShowsNoGrantWithoutAPool) {
    TrainingJobView view = granted_view();
    view.pool = ResolvedPool{};
    view.pool.blocker = {"PoolNotFound", "CachePool nvme does not exist any more."};
    EXPECT_EQ(status_at(view, 2).columns.cache, "0B/4Gi");
}

TEST(SummarizePoolOfAttempt, ShowsNoGrantOnceASuspendedJobHasNoPods) {
    TrainingJobView view = granted_view();
    view.job.spec.suspend = true;
    view.jobs[0].meta.deleting_since = wall(2);
    EXPECT_EQ(status_at(view, 2).columns.cache, "3Gi/4Gi") << "the attempt's pods still read";
    view.pods.clear();
    EXPECT_EQ(status_at(view, 2).columns.cache, "0B/4Gi");
}

}  // namespace
}  // namespace stoker::control
