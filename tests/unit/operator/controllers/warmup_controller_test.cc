#include <algorithm>

#include <gtest/gtest.h>

#include "operator/api/time_format.h"
#include "operator/controllers/dataset/controller.h"
#include "operator/controllers/warmup/controller.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/view/warmups.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// A warm-up of Dataset data/digits at each full hour, which has ended its run.
struct WarmupControllerTest : ::testing::Test {
    WarmupControllerTest() {
        bench.put(bench.cache.datasets(), make_shared_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        const WallTime now = bench.clock.wall_now();
        bench.clock.advance(std::chrono::ceil<hours>(now) - now + minutes{1});
        warmup = make_digits_warmup();
        warmup.meta.created_at = bench.clock.wall_now() - hours{2};
        warmup.spec.schedule = "@hourly";
        warmup.status.observed_generation = 1;
        warmup.status.last_schedule_time = bench.clock.wall_now();
        warmup.status.next_schedule_time = warmup.meta.created_at + hours{3} - minutes{1};
        warmup.status.completion_time = bench.clock.wall_now();
        warmup.status.bytes_warmed = 7;
        set_condition(
            warmup.status.conditions,
            {"Complete", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Warmed", ""});
        bench.put(bench.cache.warmups(), warmup);
    }

    // Reconciles, then copies the written status into the cache.
    DatasetWarmup reconcile() {
        const Result<Reconciled> next = controller.reconcile(warmup.meta.key());
        EXPECT_TRUE(next);
        requeue_after = next->requeue_after.value_or(Duration::max());
        const auto last = std::find_if(
            bench.client.calls.rbegin(), bench.client.calls.rend(), [](const auto& call) {
                return call.verb == "apply_status";
            });
        if (last != bench.client.calls.rend()) {
            warmup.status = parse_document<DatasetWarmup>(last->body)->status;
            bench.put(bench.cache.warmups(), warmup);
            bench.catch_up(bench.cache.warmups());
        }
        return warmup;
    }

    // A filler on node-1 of that run, whose sidecar has all samples of its listing.
    void report_filler(const std::optional<WallTime>& run) {
        Pod pod = make_filler_pod(make_child_filler());
        pod.meta.name += std::to_string(++pods);
        pod.meta.uid = pod.meta.name;
        if (run) {
            pod.meta.annotations[std::string{kFillerRunAnnotation}] = format_time(*run);
        }
        bench.put(bench.cache.filler_pods(), pod);
        const SessionId session = bench.attach(make_filler_hello(pod));
        Report report = make_sidecar_report(1);
        report.datasets[0].name = "digits";
        report.datasets[0].fill = FillProgress{};
        report.datasets[0].fill->samples = report.datasets[0].fill->stored_samples = 100;
        EXPECT_TRUE(bench.registry.report(session, report, bench.now()));
    }

    test::ControllerBench bench;
    int pods = 0;
    DatasetWarmup warmup;
    Duration requeue_after{};
    DatasetWarmupController controller{bench.parts};
};

TEST_F(WarmupControllerTest, LooksAgainAtTheNextTimeOfTheSchedule) {
    const DatasetWarmup ended = reconcile();
    EXPECT_TRUE(is_finished(ended));
    ASSERT_TRUE(ended.status.next_schedule_time);
    EXPECT_LE(requeue_after, *ended.status.next_schedule_time - bench.clock.wall_now());
}

TEST_F(WarmupControllerTest, BeginsAgainOnNodesThatItChoosesAgain) {
    bench.put(bench.cache.nodes(), make_ready_node("node-2"));
    bench.clock.advance(minutes{30});
    EXPECT_TRUE(is_finished(reconcile()));
    bench.clock.advance(minutes{30});
    const DatasetWarmup again = reconcile();
    EXPECT_FALSE(is_finished(again));
    EXPECT_EQ(again.status.nodes.size(), 2U);
    EXPECT_EQ(again.status.bytes_warmed, 0);
    EXPECT_EQ(
        *again.status.last_schedule_time, std::chrono::floor<seconds>(bench.clock.wall_now()));
    DatasetWarmupController next_leader{bench.parts};
    bench.clock.advance(seconds{10});
    ASSERT_TRUE(next_leader.reconcile(warmup.meta.key()));
    EXPECT_EQ(reconcile().status.last_schedule_time, again.status.last_schedule_time);
}

TEST_F(WarmupControllerTest, FinishesOnListingsOfItsOwnRun) {
    bench.clock.advance(hours{1});
    report_filler(std::nullopt);
    report_filler(warmup.status.last_schedule_time);
    const DatasetWarmup again = reconcile();
    EXPECT_FALSE(is_finished(again)) << "these fillers have listed for earlier runs";
    bench.clock.advance(seconds{10});
    report_filler(again.status.last_schedule_time);
    const DatasetWarmup ended = reconcile();
    EXPECT_TRUE(is_true(ended.status.conditions, std::string{kWarmupComplete}));
    EXPECT_EQ(ended.status.samples_warmed, 100);
}

TEST_F(WarmupControllerTest, ReplacesTheFillersOfEarlierRuns) {
    bench.clock.advance(hours{1});
    bench.put(bench.cache.filler_jobs(), make_child_filler());
    const WallTime run = *reconcile().status.last_schedule_time;
    DatasetController datasets{bench.parts};
    ASSERT_TRUE(datasets.reconcile({"data", "digits"}));
    const auto on_jobs = [&](const std::string& verb) {
        return std::ranges::count_if(bench.client.calls, [&](const test::FakeApiClient::Call& it) {
            return it.plural == "jobs" && it.verb == verb;
        });
    };
    EXPECT_EQ(on_jobs("remove"), 1);
    bench.cache.filler_jobs().store().remove(make_child_filler().meta.key(), "900", nullptr);
    bench.catch_up(bench.cache.datasets());
    ASSERT_TRUE(datasets.reconcile({"data", "digits"}));
    ASSERT_EQ(on_jobs("create"), 1);
    const Result<Job> made = parse_document<Job>(bench.client.calls.back().body);
    ASSERT_TRUE(made);
    EXPECT_TRUE(is_made_for(made->meta, run, run));
}

TEST_F(WarmupControllerTest, FinishesOnTheFillersOfGuests) {
    bench.clock.advance(hours{1});
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    bench.put(bench.cache.training_jobs(), make_reading_job());
    bench.put(bench.cache.pods(), make_running_pod());
    report_filler(std::nullopt);
    EXPECT_TRUE(is_finished(reconcile())) << "guests keep their listing";
}

TEST_F(WarmupControllerTest, DeletesNoWarmupThatStartsAgain) {
    warmup.spec.ttl_seconds_after_finished = 60;
    bench.put(bench.cache.warmups(), warmup);
    bench.clock.advance(minutes{2});
    reconcile();
    const auto deletes = [&] {
        return std::ranges::count(bench.client.calls, "remove", &test::FakeApiClient::Call::verb);
    };
    EXPECT_EQ(deletes(), 0);
    warmup.spec.schedule.clear();
    bench.put(bench.cache.warmups(), warmup);
    bench.catch_up(bench.cache.warmups());
    reconcile();
    EXPECT_EQ(deletes(), 1);
}

}  // namespace
}  // namespace stoker::control
