#include <algorithm>

#include <gtest/gtest.h>

#include "operator/controllers/warmup/controller.h"
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
        warmup.status.last_schedule_time = bench.clock.wall_now();
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

    test::ControllerBench bench;
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
