#include "operator/core/status/summarize_profile.h"

#include <gtest/gtest.h>

#include "operator/core/status/summarize_training_job.h"
#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// 4 GiB on two nodes; 256 MiB/s needed, 64 MiB/s from the origin, 64 KiB a sample.
TrainingJobView make_profiled_view() {
    TrainingJobView view = make_running_view();
    view.datasets.datasets[0].total = gib(4);
    JobProfile profile;
    profile.method = ProfileMethod::kPredicted;
    profile.verdict = ProfileVerdict::kDataBound;
    profile.ingest_rate = static_cast<double>(mib(256).count());
    profile.origin_rate = static_cast<double>(mib(64).count());
    profile.sample_bytes = 65536;
    profile.wait_share = 0.351;
    profile.confidence = 0.777;
    view.profile = profile;
    return view;
}

TrainingJobStatus status_of(const TrainingJobView& view) {
    return summarize_training_job(view, decide_lifecycle(view, moment(100)), moment(100));
}

TEST(SummarizeProfile, WritesTheNumbersIntoTheStatus) {
    TrainingJobView view = make_profiled_view();
    view.reports = {make_report(view, 0, 99), make_report(view, 1, 99)};
    for (SidecarReport& report : view.reports) {
        report.datasets[0].resident_bytes = gib(2);  // half of the dataset on each node
    }
    const TrainingJobStatus status = status_of(view);
    ASSERT_TRUE(status.profile && status.cache && status.cache->benefit);
    EXPECT_EQ(
        *status.profile,
        (ProfileStatus{4096, 1024, 16, count_of(gib(4)), "DataBound", "0.35", "0.8"}));
    // An epoch takes 64 s without cache, 32 s with the 4 GiB that are resident (half of the dataset
    // on each of two nodes), and 16 s at best.
    EXPECT_EQ(*status.cache->benefit, (BenefitStatus{"32", "8", "8", "Predicted", "900", "2"}))
        << "8 s a GiB in epochs of 32 s, for a job that counts as one GPU";
    EXPECT_EQ(status.columns.benefit, "8s");
}

TEST(SummarizeProfile, PrintsReadableNumbers) {
    TrainingJobView view = make_profiled_view();
    view.reports = {make_report(view, 0, 99), make_report(view, 1, 99)};
    for (SidecarReport& report : view.reports) {
        report.datasets[0].resident_bytes = gib(2);
    }
    view.profile->origin_rate *= 32 / 99.6;
    EXPECT_EQ(status_of(view).cache->benefit->seconds_saved_per_epoch, "100") << "not 1e+02";
    view.profile->origin_rate = view.profile->ingest_rate * 10;
    EXPECT_EQ(
        *status_of(view).cache->benefit, (BenefitStatus{"0", "0", "0", "Predicted", "0", "1"}));
}

TEST(SummarizeProfile, DescribesTheJobsNeedsInOneSentence) {
    TrainingJobView view = make_profiled_view();
    Condition judged = judge_profile(view);
    EXPECT_EQ(judged.status, ConditionStatus::kTrue);
    EXPECT_EQ(judged.reason, "DataBound");
    EXPECT_EQ(
        judged.message,
        "The job would read 256Mi/s if data were never late; the origin gives 64Mi/s.");
    view.profile->verdict = ProfileVerdict::kUnknown;
    view.profile->origin_rate_is_bound = true;
    judged = judge_profile(view);
    EXPECT_EQ(judged.status, ConditionStatus::kUnknown);
    EXPECT_EQ(judged.reason, "Profiling");
    EXPECT_NE(judged.message.find("at least 64Mi/s"), std::string::npos) << judged.message;
    view.profile->origin_rate = 0;
    EXPECT_NE(judge_profile(view).message.find("read nothing from the origin"), std::string::npos);
    view.profile.reset();
    EXPECT_EQ(judge_profile(view).reason, "Profiling");
}

TEST(SummarizeProfile, KeepsTheLastProfileUntilANewOperatorHasOne) {
    TrainingJobView view = make_profiled_view();
    view.reports = {make_report(view, 0, 99)};
    view.job.status = status_of(view);
    view.profile.reset();
    const TrainingJobStatus later = status_of(view);
    EXPECT_EQ(later.profile, view.job.status.profile);
    EXPECT_EQ(find_condition(later.conditions, "Profiled")->reason, "DataBound");
}

TEST(SummarizeProfile, WritesNoValueWhileTheSizeIsUnknown) {
    TrainingJobView view = make_profiled_view();
    view.datasets.datasets[0].total.reset();
    EXPECT_FALSE(value_of_job(view, gib(1)));
    const TrainingJobStatus status = status_of(view);
    ASSERT_TRUE(status.profile);
    EXPECT_EQ(status.profile->samples_per_second_needed, 4096);
    EXPECT_EQ(status.profile->dataset_bytes, 0);
    EXPECT_FALSE(status.cache->benefit);
}

TEST(SummarizeProfile, CountsTheGpusOfAllNodes) {
    TrainingJobView view = make_profiled_view();
    const double without = value_of_job(view, gib(4))->gpu_seconds_saved_per_gib_hour;
    view.job.spec.trainer.resources.limits = {{"nvidia.com/gpu", "8"}};
    EXPECT_DOUBLE_EQ(value_of_job(view, gib(4))->gpu_seconds_saved_per_gib_hour, 16 * without);
}

}  // namespace
}  // namespace stoker::control
