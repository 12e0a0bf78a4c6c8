#include <algorithm>

#include <gtest/gtest.h>

#include "operator/controllers/dataset/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/core/make_packing.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

struct DatasetPackingTest : ::testing::Test {
    DatasetPackingTest() { bench.put(bench.cache.datasets(), make_packing_dataset()); }

    // Reconciles, then copies the written status into the cache.
    Dataset reconcile(DatasetController& with) {
        bench.clock.advance(seconds{6});
        bench.catch_up(bench.cache.packing_jobs());
        const Result<Reconciled> next = with.reconcile({"ml", "digits"});
        EXPECT_TRUE(next);
        requeue_after = next->requeue_after;
        Dataset dataset = bench.cache.datasets().store().get({"ml", "digits"})->value;
        const auto last = std::find_if(
            bench.client.calls.rbegin(), bench.client.calls.rend(), [](const auto& call) {
                return call.verb == "apply_status";
            });
        if (last != bench.client.calls.rend()) {
            dataset.status = parse_document<Dataset>(last->body)->status;
            bench.put(bench.cache.datasets(), dataset);
            bench.catch_up(bench.cache.datasets());
        }
        return dataset;
    }

    Dataset reconcile() { return reconcile(controller); }

    static std::string reason(const Dataset& dataset, const std::string& type) {
        const Condition* condition = find_condition(dataset.status.conditions, type);
        return condition == nullptr ? "" : condition->reason;
    }

    [[nodiscard]] std::vector<std::string> on_jobs() const {
        std::vector<std::string> verbs;
        for (const test::FakeApiClient::Call& call : bench.client.calls) {
            if (call.plural == "jobs") {
                verbs.push_back(call.verb);
            }
        }
        return verbs;
    }

    test::ControllerBench bench;
    std::optional<Duration> requeue_after;
    DatasetController controller{bench.parts};
};

TEST_F(DatasetPackingTest, CreatesTheJobOnce) {
    const Dataset dataset = reconcile();
    EXPECT_EQ(reason(dataset, "Packed"), "Starting");
    EXPECT_EQ(reason(dataset, "Ready"), "NotPacked");
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"create"});
    const Result<Job> made = parse_document<Job>(bench.client.calls.back().body);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->meta.name, packing_job_name(dataset));
    bench.put(bench.cache.packing_jobs(), make_packing_job(dataset));
    EXPECT_EQ(reason(reconcile(), "Packed"), "Packing");
    DatasetController next_leader{bench.parts};
    EXPECT_EQ(reason(reconcile(next_leader), "Packed"), "Packing");
    EXPECT_EQ(on_jobs().size(), 1U);
}

TEST_F(DatasetPackingTest, IsPackedForGoodAfterSuccess) {
    const Job job = make_ended_packing_job(make_packing_dataset(), true);
    bench.put(bench.cache.packing_jobs(), job);
    bench.put(bench.cache.packing_pods(), make_successful_packing_pod(job));
    const Dataset packed = reconcile();
    EXPECT_TRUE(is_packed(packed));
    EXPECT_EQ(packed.status.packing->samples, 797);
    EXPECT_EQ(reason(packed, "Ready"), "NotListed");
    bench.cache.packing_jobs().store().remove(job.meta.key(), "900", nullptr);
    DatasetController next_leader{bench.parts};
    EXPECT_EQ(reason(reconcile(next_leader), "Packed"), "Packed");
    EXPECT_TRUE(on_jobs().empty()) << "somebody has deleted the Job";
}

TEST_F(DatasetPackingTest, RetriesAFailedJobWhenItIsDeleted) {
    const Job job = make_ended_packing_job(make_packing_dataset(), false);
    bench.put(bench.cache.packing_jobs(), job);
    EXPECT_EQ(reason(reconcile(), "Packed"), "Failed");
    EXPECT_TRUE(on_jobs().empty());
    bench.cache.packing_jobs().store().remove(job.meta.key(), "900", nullptr);
    reconcile();
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"create"});
}

TEST_F(DatasetPackingTest, ReplacesTheJobWhenTheSpecChanges) {
    bench.put(bench.cache.packing_jobs(), make_ended_packing_job(make_packing_dataset(), false));
    Dataset changed = make_packing_dataset();
    changed.spec.packing->from.secret_ref = "correct-keys";
    bench.put(bench.cache.datasets(), changed);
    reconcile();
    EXPECT_EQ(on_jobs(), std::vector<std::string>{"remove"});
}

TEST_F(DatasetPackingTest, QuotesTheApiServersRefusal) {
    bench.client.refused = {"jobs", Error{ErrorCode::kForbidden, "exceeded quota: jobs=1"}};
    reconcile();
    const Dataset dataset = reconcile();
    EXPECT_EQ(reason(dataset, "Packed"), "Refused");
    EXPECT_EQ(on_jobs().size(), 1U) << "a refused create is not retried at once";
    bench.client.refused.reset();
    bench.clock.advance(JobRefusals::kTryAgain);
    reconcile();
    EXPECT_EQ(on_jobs().size(), 2U);
}

TEST_F(DatasetPackingTest, RetriesARefusedJobMoreAndMoreRarely) {
    bench.client.refused = {"jobs", Error{ErrorCode::kForbidden, "exceeded quota: jobs=1"}};
    reconcile();
    for (const int wait : {30, 60, 120, 240, 300, 300}) {
        const std::size_t before = on_jobs().size();
        bench.clock.advance(seconds{wait - 12});
        reconcile();
        EXPECT_EQ(on_jobs().size(), before) << wait;
        reconcile();
        EXPECT_EQ(on_jobs().size(), before + 1) << wait;
    }
}

TEST_F(DatasetPackingTest, LooksRarelyWhyAJobHasNoPod) {
    Job job = make_packing_job(make_packing_dataset());
    job.meta.created_at = bench.clock.wall_now();
    bench.put(bench.cache.packing_jobs(), job);
    reconcile();
    reconcile();
    EXPECT_EQ(requeue_after, seconds{10});
    bench.clock.advance(std::chrono::minutes{2});
    reconcile();
    EXPECT_GT(requeue_after, seconds{60});
    bench.clock.advance(std::chrono::hours{2});
    reconcile();
    EXPECT_EQ(requeue_after, std::chrono::minutes{5});
    bench.put(bench.cache.packing_pods(), make_packing_pod(job, PodPhase::kRunning));
    reconcile();
    EXPECT_EQ(requeue_after, std::nullopt);
}

TEST_F(DatasetPackingTest, LooksAtAnEndedJobOnlyWhenItChanges) {
    for (const bool suspended : {false, true}) {
        Job job = make_ended_packing_job(make_packing_dataset(), false);
        job.suspend = suspended;
        job.end = suspended ? std::nullopt : job.end;
        bench.put(bench.cache.packing_jobs(), job);
        reconcile();
        reconcile();
        EXPECT_EQ(requeue_after, std::nullopt) << suspended;
    }
}

TEST_F(DatasetPackingTest, ForgetsThePackingWithTheField) {
    reconcile();
    Dataset dataset = bench.cache.datasets().store().get({"ml", "digits"})->value;
    dataset.spec.packing.reset();
    bench.put(bench.cache.datasets(), dataset);
    bench.catch_up(bench.cache.datasets());
    const Dataset after = reconcile();
    EXPECT_EQ(reason(after, "Packed"), "");
    EXPECT_FALSE(after.status.packing);
}

}  // namespace
}  // namespace stoker::control
