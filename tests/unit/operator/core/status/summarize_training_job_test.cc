#include "operator/core/status/summarize_training_job.h"

#include <gtest/gtest.h>

#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TrainingJobStatus status_at(const TrainingJobView& view, std::int64_t second) {
    const Lifecycle lifecycle = decide_lifecycle(view, moment(second));
    return summarize_training_job(view, lifecycle, moment(second));
}

const Condition& condition(const TrainingJobStatus& status, const std::string& type) {
    static const Condition kNone;
    const Condition* found = find_condition(status.conditions, type);
    EXPECT_NE(found, nullptr) << type;
    return found == nullptr ? kNone : *found;
}

void expect(
    const TrainingJobStatus& status,
    const std::string& type,
    ConditionStatus value,
    const std::string& reason) {
    EXPECT_EQ(condition(status, type).status, value) << type;
    EXPECT_EQ(condition(status, type).reason, reason)
        << type << ": " << condition(status, type).message;
}

JobAllocation allocation(Bytes granted, Bytes wanted, AllocationReason reason) {
    return {{"team", "resnet"}, "nvme", wanted, granted, reason, "one sentence.", {granted}};
}

TEST(SummarizeTrainingJob, SetsEveryConditionForThisGeneration) {
    const TrainingJobStatus status = status_at(make_view(), 10);
    EXPECT_EQ(status.observed_generation, 3);
    ASSERT_EQ(status.conditions.size(), 9U);
    for (const Condition& c : status.conditions) {
        EXPECT_EQ(c.observed_generation, 3) << c.type;
        EXPECT_EQ(c.last_transition, wall(10)) << c.type;
        EXPECT_FALSE(c.reason.empty()) << c.type;
    }
    expect(status, "Finished", ConditionStatus::kFalse, "Starting");
    expect(status, "Running", ConditionStatus::kFalse, "Starting");
    expect(status, "Complete", ConditionStatus::kFalse, "NotFinished");
    expect(status, "Failed", ConditionStatus::kFalse, "NotFinished");
    expect(status, "Suspended", ConditionStatus::kFalse, "NotSuspended");
    expect(status, "DataReady", ConditionStatus::kUnknown, "NotListed");
    expect(status, "CacheAllocated", ConditionStatus::kUnknown, "WaitingForPods");
}

TEST(SummarizeTrainingJob, SumsTheSidecarsCounters) {
    TrainingJobView view = make_running_view();
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        SidecarReport report = make_report(view, rank, 100);
        report.datasets[0].resident_bytes = gib(1);
        report.datasets[0].cache_bytes_read = gib(62);
        report.datasets[0].miss_bytes_read = gib(38);
        report.datasets[0].origin_bytes_read = gib(99);  // fetched for another job as well
        report.datasets[0].hit_samples = 1;
        report.datasets[0].miss_samples = 999;
        report.trainer.epoch = 3;
        report.trainer.epoch_samples = 500;
        report.trainer.epoch_position = 105;
        view.reports.push_back(report);
    }
    view.allocation = allocation(gib(5), gib(8), AllocationReason::kQuotaExhausted);
    const TrainingJobStatus status = status_at(view, 101);
    expect(status, "DataReady", ConditionStatus::kTrue, "Listed");
    expect(status, "CacheAllocated", ConditionStatus::kTrue, "QuotaExhausted");
    EXPECT_EQ(condition(status, "CacheAllocated").message, "one sentence.");
    ASSERT_TRUE(status.cache && status.progress);
    EXPECT_EQ(status.cache->pool, "nvme");
    EXPECT_EQ(status.cache->used_bytes, count_of(gib(2)));
    EXPECT_EQ(status.cache->cache_bytes, count_of(gib(124)));
    EXPECT_EQ(status.cache->origin_bytes, count_of(gib(76)));
    EXPECT_EQ(status.cache->hit_ratio, "0.62");
    EXPECT_EQ(status.cache->sampled_at, wall(100));
    EXPECT_EQ(status.progress->epoch, 3);
    EXPECT_EQ(status.progress->percentage, 21);
    EXPECT_EQ(status.progress->samples_read, 210);
    EXPECT_EQ(
        status.datasets.at(0),
        (JobDatasetStatus{
            "train", "uid-imagenet", count_of(gib(4)), 1000, count_of(gib(5)), count_of(gib(2))}));
    EXPECT_EQ(status.columns.cache, "5Gi/8Gi");
    EXPECT_EQ(status.columns.hit, "62%");
}

TEST(SummarizeTrainingJob, DerivesRatesFromThePreviousStatus) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100), make_report(view, 1, 100)};
    view.reports[0].trainer = {3, 0, {}, 0, {}, {}, 0, 1000, 100};
    view.reports[1].trainer = {3, 0, {}, 0, {}, {}, 0, 1000, 100};
    view.reports[0].datasets[0].miss_bytes_read = mib(100);
    view.job.status = status_at(view, 100);
    EXPECT_EQ(view.job.status.cache->origin_bytes_per_second, 0);
    for (SidecarReport& report : view.reports) {
        report.received_at = moment(110).steady;
        report.received_wall = wall(110);
        report.trainer.epoch_position = 200;
    }
    view.reports[0].datasets[0].miss_bytes_read = mib(600);
    const TrainingJobStatus status = status_at(view, 110);
    EXPECT_EQ(status.cache->origin_bytes_per_second, count_of(mib(50)));
    EXPECT_EQ(status.columns.origin, "50Mi/s");
    EXPECT_EQ(status.progress->estimated_remaining_seconds, 80);
}

TEST(SummarizeTrainingJob, WithoutReportsBecomesUnknownAndKeepsTheNumbers) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].resident_bytes = gib(2);
    view.allocation = allocation(gib(4), gib(4), AllocationReason::kGranted);
    view.job.status = status_at(view, 100);
    EXPECT_EQ(view.job.status.cache->used_bytes, count_of(gib(2)));
    TrainingJobStatus status = status_at(view, 160);
    expect(status, "DataReady", ConditionStatus::kTrue, "Listed");
    status = status_at(view, 161);
    expect(status, "DataReady", ConditionStatus::kUnknown, "NodesSilent");
    expect(status, "CacheAllocated", ConditionStatus::kUnknown, "NodesSilent");
    EXPECT_EQ(status.cache->used_bytes, count_of(gib(2)));
    EXPECT_EQ(status.cache->sampled_at, wall(100));
}

TEST(SummarizeTrainingJob, WaitsAMinuteForReportsToANewOperator) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.job.status = status_at(view, 100);
    view.reports.clear();  // as after the start of a new operator
    expect(status_at(view, 150), "DataReady", ConditionStatus::kUnknown, "NotListed");
    view.datasets.datasets[0].total = gib(4);
    expect(status_at(view, 150), "DataReady", ConditionStatus::kTrue, "Listed");
    expect(status_at(view, 161), "DataReady", ConditionStatus::kUnknown, "NodesSilent");
}

TEST(SummarizeTrainingJob, QuotesTheOriginsError) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    DatasetReport& report = view.reports[0].datasets[0];
    report.manifest_state = ManifestState::kFailed;
    report.error = "403 AccessDenied";
    TrainingJobStatus status = status_at(view, 101);
    expect(status, "DataReady", ConditionStatus::kFalse, "OriginFailed");
    EXPECT_EQ(
        condition(status, "DataReady").message, "Dataset train cannot be listed: 403 AccessDenied");
    report.manifest_state = ManifestState::kListing;
    report.objects_listed = 12;
    status = status_at(view, 101);
    expect(status, "DataReady", ConditionStatus::kUnknown, "Listing");
    EXPECT_EQ(
        condition(status, "DataReady").message,
        "Dataset train is being listed: 12 objects so far.");
}

TEST(SummarizeTrainingJob, ReportsANodeThatKeepsNoNewBytes) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].admitting = false;
    view.reports[0].datasets[0].error = "disk full";
    view.allocation = allocation(gib(4), gib(4), AllocationReason::kGranted);
    const TrainingJobStatus status = status_at(view, 101);
    expect(status, "CacheAllocated", ConditionStatus::kTrue, "Granted");
    EXPECT_EQ(
        condition(status, "CacheAllocated").message,
        "one sentence. Node n1 keeps nothing new: disk full.");
}

TEST(SummarizeTrainingJob, ReportsADiskSmallerThanTheGrantAndTheFix) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    DatasetReport& report = view.reports[0].datasets[0];
    report.granted_bytes = gib(1);
    report.disk_limit = DiskLimit{mib(124), gib(2)};
    view.allocation = allocation(gib(1), gib(4), AllocationReason::kGranted);
    const TrainingJobStatus status = status_at(view, 101);
    expect(status, "CacheAllocated", ConditionStatus::kTrue, "Granted");
    EXPECT_EQ(
        condition(status, "CacheAllocated").message,
        "one sentence. Node n1 keeps at most 124Mi of the 1Gi that it is granted, because 2Gi of "
        "its disk stay free (the pool's reservedFree, and the window): free 900Mi there, or lower "
        "reservedFree.");
    report.resident_samples = report.samples;
    EXPECT_EQ(condition(status_at(view, 101), "CacheAllocated").message, "one sentence.")
        << "all of it is there";
    report.resident_samples = 0;
    report.disk_limit->resident = gib(1);
    EXPECT_EQ(condition(status_at(view, 101), "CacheAllocated").message, "one sentence.");
}

// Until the origin is listed, the job gets 0 bytes only because its dataset's size is unknown.
TEST(SummarizeTrainingJob, CacheAllocatedIsUnknownBeforeTheListing) {
    TrainingJobView view = make_running_view();
    view.allocation = allocation({}, {}, AllocationReason::kProfiling);
    expect(status_at(view, 1), "CacheAllocated", ConditionStatus::kUnknown, "Profiling");
    view.allocation = allocation({}, gib(4), AllocationReason::kQuotaExhausted);
    expect(status_at(view, 1), "CacheAllocated", ConditionStatus::kFalse, "QuotaExhausted");
}

TEST(SummarizeTrainingJob, ReportsTheLastFailureOfAListedOrigin) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].error = "503 SlowDown";
    const TrainingJobStatus status = status_at(view, 101);
    expect(status, "DataReady", ConditionStatus::kTrue, "Listed");
    EXPECT_EQ(
        condition(status, "DataReady").message,
        "Dataset train is listed; the last fetch failed: 503 SlowDown");
}

// The job succeeded, so it got its data, although the last report says that the listing failed.
TEST(SummarizeTrainingJob, DataReadyIsNotFalseAfterSuccess) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    DatasetReport& report = view.reports[0].datasets[0];
    report.manifest_state = ManifestState::kFailed;
    report.error = "403 AccessDenied";
    view.job.status = status_at(view, 100);
    expect(view.job.status, "DataReady", ConditionStatus::kFalse, "OriginFailed");
    view.jobs[0].end = JobEnd{true, "", "", wall(105)};
    view.job.status = status_at(view, 106);
    expect(view.job.status, "DataReady", ConditionStatus::kUnknown, "Finished");
    EXPECT_EQ(
        condition(view.job.status, "DataReady").message,
        "The job has ended. Last known: Dataset train cannot be listed: 403 AccessDenied");
    EXPECT_EQ(status_at(view, 107).conditions, view.job.status.conditions);
    EXPECT_EQ(status_at(view, 1000).conditions, view.job.status.conditions);
    report.manifest_state = ManifestState::kReady;
    report.error.clear();
    expect(status_at(view, 108), "DataReady", ConditionStatus::kTrue, "Listed");
}

TEST(SummarizeTrainingJob, FailedJobKeepsTheReason) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.backoff_limit = 0;
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].manifest_state = ManifestState::kFailed;
    view.job.status = status_at(view, 100);
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(105)};
    expect(status_at(view, 106), "DataReady", ConditionStatus::kFalse, "OriginFailed");
}

TEST(SummarizeTrainingJob, EndedJobWaitsForNothing) {
    TrainingJobView view = make_running_view();
    view.job.status = status_at(view, 1);
    expect(view.job.status, "Profiled", ConditionStatus::kUnknown, "Profiling");
    view.jobs[0].end = JobEnd{true, "", "", wall(5)};
    view.job.status = status_at(view, 6);
    for (const char* type : {"DataReady", "CacheAllocated", "Profiled"}) {
        expect(view.job.status, type, ConditionStatus::kUnknown, "Finished");
        EXPECT_TRUE(condition(view.job.status, type).message.starts_with("The job has ended."));
    }
    EXPECT_EQ(status_at(view, 7), view.job.status);
}

TEST(SummarizeTrainingJob, ReportsAMissingDatasetAndAMissingPool) {
    TrainingJobView view = make_view();
    view.datasets = resolve_datasets(view.job, {});
    view.pool = resolve_pool(view.job, {}, {});
    const TrainingJobStatus status = status_at(view, 10);
    expect(status, "Finished", ConditionStatus::kFalse, "Waiting");
    expect(status, "DataReady", ConditionStatus::kFalse, "DatasetNotFound");
    expect(status, "CacheAllocated", ConditionStatus::kFalse, "NoPool");
    EXPECT_FALSE(status.cache);
    EXPECT_EQ(status.columns.cache, "");
}

// A view whose attempt reads a Dataset of namespace "data", which was shared with all namespaces
// when the attempt started.
struct Reader {
    Reader() {
        view.job.spec.datasets[0].dataset_ref_namespace = "data";
        dataset.meta.ns = "data";
        dataset.spec.sources[0].secret_ref = "keys";
        dataset.spec.shared_with = LabelSelector{};
        resolve();
    }

    void resolve() { view.datasets = resolve_datasets(view.job, {dataset}, TextMap{}); }

    Dataset dataset = make_dataset();
    TrainingJobView view = make_running_view();
};

TEST(SummarizeTrainingJob, ReportsToARunningAttemptThatSharingEnded) {
    Reader reader;
    reader.view.job.status = status_at(reader.view, 10);
    EXPECT_EQ(reader.view.job.status.datasets.at(0).uid, "uid-imagenet");
    reader.dataset.spec.shared_with.reset();
    reader.resolve();
    reader.view.reports = {make_report(reader.view, 0, 20)};
    const TrainingJobStatus status = status_at(reader.view, 20);
    expect(status, "DataReady", ConditionStatus::kTrue, "Listed");
    EXPECT_NE(condition(status, "DataReady").message.find("not shared"), std::string::npos);
    EXPECT_EQ(status.datasets.at(0).uid, "uid-imagenet");
}

TEST(SummarizeTrainingJob, ClearsUidsWhileNoAttemptReads) {
    Reader reader;
    reader.view.job.status = status_at(reader.view, 10);
    reader.view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "", wall(15)};
    reader.view.job.status = status_at(reader.view, 16);
    expect(reader.view.job.status, "Finished", ConditionStatus::kFalse, "Restarting");
    EXPECT_EQ(reader.view.job.status.datasets.at(0).uid, "");
    reader.dataset.spec.shared_with.reset();
    reader.resolve();
    EXPECT_FALSE(reader.view.datasets.goes_on);
    expect(status_at(reader.view, 17), "DataReady", ConditionStatus::kFalse, "NotShared");
}

TEST(SummarizeTrainingJob, NamesTheRefusedKeyAndSuggestsASecret) {
    Reader reader;
    reader.view.reports = {make_report(reader.view, 0, 20)};
    reader.view.reports[0].datasets[0].manifest_state = ManifestState::kFailed;
    reader.view.reports[0].datasets[0].error = "403 AccessDenied";
    const TrainingJobStatus status = status_at(reader.view, 20);
    expect(status, "DataReady", ConditionStatus::kFalse, "OriginFailed");
    EXPECT_NE(
        condition(status, "DataReady").message.find("with a Secret keys in namespace team"),
        std::string::npos)
        << condition(status, "DataReady").message;
}

TEST(SummarizeTrainingJob, KeepsTheLastCacheConditionsAtTheEnd) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.allocation = allocation(gib(1), gib(4), AllocationReason::kQuotaExhausted);
    view.job.status = status_at(view, 100);
    view.jobs[0].end = JobEnd{true, "", "", wall(105)};
    view.allocation.reset();
    view.job.status = status_at(view, 106);
    expect(view.job.status, "Complete", ConditionStatus::kTrue, "Complete");
    expect(view.job.status, "Finished", ConditionStatus::kTrue, "Complete");
    expect(view.job.status, "CacheAllocated", ConditionStatus::kTrue, "QuotaExhausted");
    EXPECT_EQ(view.job.status.completion_time, wall(105));
    view.reports.clear();
    const TrainingJobStatus later = status_at(view, 10'000);
    EXPECT_EQ(later.conditions, view.job.status.conditions);
    EXPECT_EQ(later.cache->allocated_bytes, count_of(gib(1)));
}

TEST(SummarizeTrainingJob, ReportsTheReasonOfAFailure) {
    TrainingJobView view = make_running_view();
    view.job.spec.run_policy.backoff_limit = 0;
    view.jobs[0].end = JobEnd{false, "PodFailurePolicy", "exit code 1", wall(5)};
    const TrainingJobStatus status = status_at(view, 6);
    expect(status, "Failed", ConditionStatus::kTrue, "BackoffLimitExceeded");
    expect(status, "Finished", ConditionStatus::kTrue, "Failed");
    expect(status, "Complete", ConditionStatus::kFalse, "Failed");
}

// Condition messages as `kubectl describe` shows them must read as sentences.
TEST(SummarizeTrainingJob, EveryConditionMessageIsASentence) {
    TrainingJobView view = make_running_view();
    const TrainingJobStatus running = status_at(view, 5);
    EXPECT_EQ(condition(running, "Running").message, "All 2 ranks run.");
    EXPECT_EQ(condition(running, "Failed").message, "The job has not ended.");
    EXPECT_EQ(condition(running, "Suspended").message, "The job is not suspended.");
    view.jobs[0].end = JobEnd{true, "", "", wall(105)};
    const TrainingJobStatus complete = status_at(view, 106);
    expect(complete, "Failed", ConditionStatus::kFalse, "Succeeded");
    expect(complete, "Running", ConditionStatus::kFalse, "Finished");
    EXPECT_EQ(condition(complete, "Failed").message, "All ranks succeeded in attempt 1.");
    EXPECT_EQ(condition(complete, "Running").message, "The job has ended.");
    EXPECT_EQ(condition(complete, "Suspended").message, "The job is not suspended.");
    for (const TrainingJobStatus& status : {running, complete}) {
        for (const Condition& c : status.conditions) {
            ASSERT_FALSE(c.message.empty()) << c.type;
            EXPECT_NE(c.message.back(), ' ') << c.type;
        }
    }
}

// A sidecar's last report may arrive after the Job's end.
TEST(SummarizeTrainingJob, UsesALastReportAfterTheEnd) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].resident_bytes = mib(1);
    view.job.status = status_at(view, 100);
    view.jobs[0].end = JobEnd{true, "", "", wall(105)};
    view.job.status = status_at(view, 106);
    view.reports[0] = make_report(view, 0, 107);
    view.reports[0].attached = false;
    view.reports[0].datasets[0].resident_bytes = gib(4);
    view.reports[0].datasets[0].cache_bytes_read = mib(9);
    view.reports[0].datasets[0].miss_bytes_read = mib(1);
    view.reports[0].trainer.epoch_samples = 500;
    view.reports[0].trainer.epoch_position = 500;
    const TrainingJobStatus status = status_at(view, 108);
    EXPECT_EQ(status.cache->used_bytes, count_of(gib(4)));
    EXPECT_EQ(status.cache->hit_ratio, "0.90");
    EXPECT_EQ(status.progress->percentage, 100);
    EXPECT_FALSE(status.progress->estimated_remaining_seconds);
    EXPECT_EQ(status.conditions, view.job.status.conditions);
}

TEST(SummarizeTrainingJob, ResetsCountersForANewAttempt) {
    TrainingJobView view = make_running_view(1);
    view.reports = {make_report(view, 0, 100)};
    view.reports[0].datasets[0].miss_bytes_read = gib(9);
    view.job.status = status_at(view, 100);
    EXPECT_EQ(view.job.status.cache->origin_bytes, count_of(gib(9)));
    TrainingJobView second = make_running_view(2);
    second.job.status = view.job.status;
    second.job.status.attempt = 2;
    second.reports = view.reports;
    second.reports.push_back(make_report(second, 0, 120));
    second.reports[1].datasets[0].miss_bytes_read = gib(1);
    const TrainingJobStatus status = status_at(second, 121);
    EXPECT_EQ(status.cache->origin_bytes, count_of(gib(1)));
    EXPECT_GE(status.cache->origin_bytes_per_second, 0);
}

TEST(SummarizeTrainingJob, ListsItsJobs) {
    TrainingJobView view = make_running_view(2);
    view.jobs.push_back(make_job(view, 1));
    view.jobs[1].failed = 1;
    const TrainingJobStatus status = status_at(view, 10);
    ASSERT_EQ(status.jobs.size(), 2U);
    EXPECT_EQ(status.jobs[0].name, "resnet-a1");
    EXPECT_EQ(status.jobs[0].failed, 1);
    EXPECT_EQ(status.jobs[1].ready, 2);
}

TEST(SummarizeTrainingJob, WarnsWhileImportanceIsReadOnSeveralNodesWithoutPeers) {
    TrainingJobView view = make_running_view();
    view.job.spec.datasets[0].contract = Contract::kImportance;
    EXPECT_EQ(find_condition(status_at(view, 10).conditions, "LossesShared"), nullptr);
    view.datasets.datasets[0].peers = false;
    view.job.status = status_at(view, 10);
    expect(view.job.status, "LossesShared", ConditionStatus::kFalse, "OwnNodeOnly");
    view.job.spec.datasets[0].contract = Contract::kExact;
    EXPECT_EQ(find_condition(status_at(view, 11).conditions, "LossesShared"), nullptr);
}

TEST(SummarizeTrainingJob, SecondCallChangesNothing) {
    TrainingJobView view = make_running_view();
    view.reports = {make_report(view, 0, 100), make_report(view, 1, 90)};
    view.allocation = allocation(gib(1), gib(4), AllocationReason::kPoolFull);
    view.job.status = status_at(view, 101);
    EXPECT_EQ(status_at(view, 101), view.job.status);
    EXPECT_EQ(status_at(view, 102), view.job.status) << "nor does time alone";
}

}  // namespace
}  // namespace stoker::control
