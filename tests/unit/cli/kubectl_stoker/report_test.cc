// `advise tj/NAME` and `report tj/NAME`.
#include "cli/kubectl_stoker/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/kubectl_stoker/html.h"
#include "cli/kubectl_stoker/job_advice.h"
#include "cli/kubectl_stoker/report_plots.h"
#include "tests/unit/cli/kubectl_stoker/busy_cluster.h"
#include "tests/unit/cli/kubectl_stoker/golden.h"

namespace stoker::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

void explain(JobAdviceFacts& facts, const control::AllocationView& view) {
    const auto key = facts.job.meta.key();
    facts.demand = *std::ranges::find(view.demands, key, &control::Demand::job);
    facts.explanation = control::explain_job(view, key);
}

JobAdviceFacts advice_facts(const std::string& name) {
    const BusyCluster cluster;
    JobAdviceFacts facts;
    facts.job = cluster.job(name);
    explain(facts, cluster.snapshot().view);
    return facts;
}

ReportFacts report_facts(const std::string& name) {
    const BusyCluster cluster;
    const control::AllocationSnapshot snapshot = cluster.snapshot();
    ReportFacts facts;
    facts.why.job = cluster.job(name);
    facts.why.explanation = control::explain_job(snapshot.view, facts.why.job.meta.key());
    facts.why.view = snapshot.view;
    facts.why.version = snapshot.version;
    facts.why.job.status.cache->cache_bytes = static_cast<std::int64_t>(gib(620).count());
    facts.why.job.status.cache->origin_bytes = static_cast<std::int64_t>(gib(380).count());
    facts.why.job.spec.trainer.image = "registry.example.com/resnet:1";
    control::JobDataset dataset;
    dataset.name = "train";
    dataset.dataset_ref = "imagenet";
    facts.why.job.spec.datasets = {dataset};
    for (const char* node : {"gpu-1", "gpu-2"}) {
        control::Pod pod;
        pod.meta.name = std::string{"resnet-a1-"} + node;
        pod.node_name = node;
        pod.phase = control::PodPhase::kRunning;
        pod.trainer.ready = true;
        pod.sidecar.ready = true;
        pod.sidecar.restart_count = 1;
        facts.pods.push_back(pod);
    }
    facts.events = {{"2026-11-27T22:00:00Z", "Normal", "Started", "attempt 1 starts", 1}};
    facts.made_at = WallTime{std::chrono::seconds{1'790'000'000}};
    return facts;
}

TEST(JobAdvice, UsesTheOperatorsMeasurements) {
    const auto advice = advise_job(advice_facts("resnet"));
    ASSERT_TRUE(advice) << advice.error().message;
    expect_golden("advise-resnet.txt", job_advice_text(*advice));
    expect_golden("advise-resnet.json", job_advice_json(*advice));
}

TEST(JobAdvice, StatusGivesTheSameRates) {
    for (const char* name : {"whisper", "resnet"}) {  // one node; four nodes
        JobAdviceFacts facts = advice_facts(name);
        const auto with = advise_job(facts);
        facts.demand.reset();
        const auto without = advise_job(facts);
        ASSERT_TRUE(with && without);
        EXPECT_EQ(without->source, "status");
        EXPECT_EQ(without->everything, with->everything);
        EXPECT_NEAR(without->profile.ingest_rate / with->profile.ingest_rate, 1, 0.01);
        EXPECT_NEAR(without->curve[5].epoch_seconds / with->curve[5].epoch_seconds, 1, 0.01);
    }
}

// A tenth of the samples gets nine tenths of the reads.
TEST(JobAdvice, UsesTheJobsOwnCurve) {
    JobAdviceFacts facts = advice_facts("whisper");
    control::AllocationView view = BusyCluster{}.snapshot().view;
    for (control::Demand& demand : view.demands) {
        if (demand.job == facts.job.meta.key()) {
            demand.datasets[0].access.kind = control::AccessKind::kMeasured;
            demand.datasets[0].access.sketch.assign(10, 1);
            demand.datasets[0].access.sketch[0] = 81;
        }
    }
    explain(facts, view);
    control::JobDataset dataset;
    dataset.name = "train";
    dataset.contract = control::Contract::kImportance;
    facts.job.spec.datasets = {dataset};
    const auto advice = advise_job(facts);
    ASSERT_TRUE(advice) << advice.error().message;
    EXPECT_NEAR(
        static_cast<double>(advice->curve[1].origin.count()),
        0.1 * static_cast<double>(advice->epoch_bytes.count()),
        0.04 * static_cast<double>(advice->epoch_bytes.count()));  // the curve has 64 chords
    EXPECT_EQ(advice->recommended, 1U);
    EXPECT_EQ(advice->contracts[2].reason, "the job's contract now");
    EXPECT_EQ(advice->contracts[2].origin, advice->curve[1].origin);
}

TEST(JobAdvice, ASelectiveEpochReadsLess) {
    JobAdviceFacts facts = advice_facts("whisper");
    control::AllocationView view = BusyCluster{}.snapshot().view;
    for (control::Demand& demand : view.demands) {
        demand.datasets[0].access.kind = control::AccessKind::kImportance;
        demand.datasets[0].access.beta = 1;
        demand.datasets[0].access.full_epochs = 0;
    }
    const auto exact = advise_job(facts);
    explain(facts, view);
    const auto selective = advise_job(facts);
    ASSERT_TRUE(exact && selective);
    EXPECT_EQ(selective->epoch_bytes.count(), exact->epoch_bytes.count() / 2);
    EXPECT_LT(selective->curve[0].epoch_seconds, exact->curve[0].epoch_seconds);
    EXPECT_LT(selective->curve[5].origin, exact->curve[5].origin);
}

TEST(JobAdvice, ComputeBoundJobsNeedNoCache) {
    const auto advice = advise_job(advice_facts("bert"));
    ASSERT_TRUE(advice) << advice.error().message;
    EXPECT_FALSE(advice->is_worth_it);
    EXPECT_THAT(job_advice_text(*advice), HasSubstr("A cache saves no time here"));
}

TEST(JobAdvice, AnUnmeasuredJobNeedsATrace) {
    const auto advice = advise_job(advice_facts("new"));
    ASSERT_FALSE(advice);
    EXPECT_EQ(advice.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(advice.error().message, HasSubstr("--trace FILE"));
}

TEST(Report, IsOnePage) {
    const std::string html = report_html(report_facts("resnet"));
    expect_golden("report-resnet.html", html);
    for (const char* outside : {"http:", "https:", "<script", "src=", "@import", "url("}) {
        EXPECT_THAT(html, Not(HasSubstr(outside)));
    }
}

TEST(Report, EscapesEveryTextOfTheCluster) {
    const std::string evil = "<img src=x onerror=\"alert(1)\">&'\x01";
    ReportFacts facts = report_facts("resnet");
    control::TrainingJob& job = facts.why.job;
    job.meta.ns = evil;
    job.spec.trainer.image = evil;
    job.spec.cache.pool_ref = evil;
    job.spec.datasets[0].name = evil;
    job.spec.datasets[0].dataset_ref = evil;
    job.status.cache->pool = evil;
    job.status.cache->benefit->method = evil;
    job.status.cache->benefit->speedup = evil;
    job.status.columns.hit = evil;
    job.status.datasets[0].name = evil;
    job.status.datasets[0].revision = evil;
    for (control::Condition& condition : job.status.conditions) {
        condition.reason = evil;
        condition.message = evil;
    }
    facts.why.explanation->allocation.message = evil;
    facts.why.explanation->contenders[0].job.name = evil;
    facts.pods[0].meta.name = evil;
    facts.pods[0].node_name = evil;
    facts.pods[0].trainer.reason = evil;
    facts.pods[0].sidecar.waiting_reason = evil;
    facts.events = {{evil, evil, evil, evil, 1}};
    facts.left_out = {evil};
    const std::string html = report_html(facts);
    EXPECT_THAT(html, Not(HasSubstr("<img")));
    EXPECT_THAT(html, Not(HasSubstr("onerror=\"")));
    EXPECT_THAT(html, Not(HasSubstr("\x01")));
    EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;&#39;"));
}

TEST(Report, WorksFromTheStatusAlone) {
    ReportFacts facts;
    facts.why.job.meta.name = "fresh";
    const std::string html = report_html(facts);
    EXPECT_THAT(html, HasSubstr("It has no cache bytes."));
    EXPECT_THAT(html, HasSubstr("Nothing was decided about its cache yet."));
}

TEST(Report, ReadsEventsOfBothVersions) {
    const auto event = control::Json::parse(
        R"({"type":"Warning","reason":"R","note":"N","eventTime":"2026-01-01T00:00:00.000000Z",)"
        R"("series":{"count":3,"lastObservedTime":"2026-01-02T00:00:00.000000Z"}})");
    const ReportEvent read = read_event(*event);
    EXPECT_EQ(read.time, "2026-01-02T00:00:00.000000Z");
    EXPECT_EQ(read.count, 3);
    EXPECT_EQ(read_event(*control::Json::parse("[]")).count, 1);
}

TEST(Plots, AreEmptyWithoutBytes) {
    EXPECT_EQ(bar_svg({{"a", Bytes{}, "red"}}), "");
    EXPECT_EQ(html_of({{"A"}, {}, {}}), "");
}

}  // namespace
}  // namespace stoker::cli
