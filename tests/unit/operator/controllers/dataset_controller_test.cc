#include <gtest/gtest.h>

#include "operator/controllers/dataset/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

struct DatasetControllerTest : ::testing::Test {
    DatasetControllerTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        bench.put(bench.cache.pods(), make_running_pod());
        TrainingJob job = make_running_job();
        set_condition(
            job.status.conditions,
            {"Running", ConditionStatus::kTrue, 1, bench.clock.wall_now(), "Running", ""});
        bench.put(bench.cache.training_jobs(), job);
        session = bench.attach(make_agent_hello());
    }

    // Reconciles and lets the cache see what was written.
    Dataset reconcile() {
        const ObjectKey key{"ml", "digits"};
        EXPECT_TRUE(controller.reconcile(key, {}));
        Dataset dataset = bench.cache.datasets().store().get(key)->value;
        if (!bench.client.calls.empty()) {
            const Result<Dataset> written = parse_dataset(bench.client.calls.back().body);
            EXPECT_TRUE(written);
            dataset.status = written->status;
            bench.put(bench.cache.datasets(), dataset);
            bench.catch_up(bench.cache.datasets());
        }
        return dataset;
    }

    static std::string ready(const Dataset& dataset) {
        const Condition* condition = find_condition(dataset.status.conditions, "Ready");
        return condition == nullptr
                   ? ""
                   : std::string{to_string(condition->status)} + " " + condition->reason;
    }

    test::ControllerBench bench;
    SessionId session;
    SweepLedger ledger;
    DatasetController controller{{bench.cache, bench.registry, ledger, bench.client, bench.clock}};
};

TEST_F(DatasetControllerTest, TellsWhatTheSidecarsSay) {
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    const Dataset dataset = reconcile();
    EXPECT_EQ(ready(dataset), "True Listed");
    EXPECT_EQ(dataset.status.cached_bytes, 60'000);
    EXPECT_EQ(dataset.status.total_bytes, 100'000);
}

TEST_F(DatasetControllerTest, SaysUnknownAfterAMinuteOfSilenceAndKeepsTheNumbers) {
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    const Dataset before = reconcile();
    bench.clock.advance(seconds{59});
    EXPECT_EQ(ready(reconcile()), "True Listed");
    bench.clock.advance(seconds{2});
    const Dataset after = reconcile();
    EXPECT_EQ(ready(after), "Unknown NodesSilent");
    EXPECT_EQ(after.status.cached_bytes, before.status.cached_bytes);
    EXPECT_EQ(after.status.total_bytes, before.status.total_bytes);
    EXPECT_EQ(after.status.sampled_at, before.status.sampled_at);
}

TEST_F(DatasetControllerTest, WhatWasSweptIsGoneAtOnceAlthoughItsSidecarSpokeAMomentBefore) {
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    ASSERT_EQ(reconcile().status.cached_bytes, 60'000);
    const std::string pool = make_nvme().meta.name;
    const auto uid = make_digits().meta.uid;
    ledger.note(pool, "node-1", uid, bench.clock.wall_now() - seconds{1});
    bench.clock.advance(seconds{6});
    EXPECT_EQ(reconcile().status.cached_bytes, 60'000) << "it has spoken since, and runs";
    bench.registry.detach(session, bench.now());
    EXPECT_EQ(reconcile().status.cached_bytes, 60'000) << "it has spoken since";
    ledger.note(pool, "node-1", uid, bench.clock.wall_now());
    bench.clock.advance(seconds{6});
    const Dataset after = reconcile();
    EXPECT_EQ(after.status.cached_bytes, 0);
    EXPECT_TRUE(after.status.placements.empty());
    EXPECT_EQ(after.status.total_bytes, 100'000) << "what it listed stays known";
}

TEST_F(DatasetControllerTest, ComesAgainByItselfWhileAJobUsesTheDataset) {
    const Result<Reconciled> next = controller.reconcile({"ml", "digits"}, {});
    ASSERT_TRUE(next);
    EXPECT_LE(next->requeue_after.value_or(std::chrono::hours{1}), seconds{60});
}

TEST_F(DatasetControllerTest, CountsUsersOfOtherNamespacesThatMayUseIt) {
    const Dataset shared = make_shared_digits();
    bench.put(bench.cache.datasets(), shared);
    bench.put(bench.cache.training_jobs(), make_reading_job());
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    const auto status_of_shared = [&] {
        EXPECT_TRUE(controller.reconcile(shared.meta.key(), {}));
        bench.catch_up(bench.cache.datasets());
        return parse_dataset(bench.client.calls.back().body)->status;
    };
    EXPECT_EQ(status_of_shared().jobs, 0) << "nobody knows the labels of its namespace";
    EXPECT_EQ(status_of_shared().cached_bytes, 0);
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    EXPECT_EQ(status_of_shared().jobs, 1);
    EXPECT_EQ(status_of_shared().cached_bytes, 60'000);
}

TEST_F(DatasetControllerTest, DoesNothingForADatasetThatIsGone) {
    EXPECT_TRUE(controller.reconcile({"ml", "gone"}, {}));
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(DatasetControllerTest, DoesNotActBeforeTheCacheShowsItsLastWrite) {
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    ASSERT_TRUE(controller.reconcile({"ml", "digits"}, {}));
    ASSERT_EQ(bench.client.calls.size(), 1U);
    const Result<Reconciled> next = controller.reconcile({"ml", "digits"}, {});
    EXPECT_EQ(bench.client.calls.size(), 1U);
    EXPECT_TRUE(next->requeue_after.has_value());
}

}  // namespace
}  // namespace stoker::control
