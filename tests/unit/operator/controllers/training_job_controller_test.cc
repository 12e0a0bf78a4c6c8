#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controllers/trainingjob/controller.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct TrainingJobControllerTest : ::testing::Test {
    TrainingJobControllerTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
    }

    void run_its_pods() {
        bench.put(bench.cache.jobs(), make_child_job());
        bench.put(bench.cache.pods(), make_running_pod());
    }

    // Reconciles, then copies the written status into the cache.
    TrainingJob reconcile() {
        bench.client.calls.clear();
        EXPECT_TRUE(controller.reconcile(key));
        TrainingJob job = bench.cache.training_jobs().store().get(key)->value;
        for (const test::FakeApiClient::Call& call : bench.client.calls) {
            if (call.verb == "apply_status") {
                job.status = parse_document<TrainingJob>(call.body)->status;
            }
        }
        bench.put(bench.cache.training_jobs(), job);
        bench.catch_up(bench.cache.training_jobs());
        bench.catch_up(bench.cache.jobs());
        return job;
    }

    static std::string condition(const TrainingJob& job, const std::string& type) {
        const Condition* found = find_condition(job.status.conditions, type);
        return found == nullptr ? "" : std::string{to_string(found->status)} + " " + found->reason;
    }

    [[nodiscard]] std::vector<std::string> verbs() const {
        std::vector<std::string> result;
        for (const test::FakeApiClient::Call& call : bench.client.calls) {
            result.push_back(call.verb + " " + call.plural);
        }
        return result;
    }

    const ObjectKey key{"ml", "mnist"};
    test::ControllerBench bench;
    TrainingJobController controller{bench.parts};
};

TEST_F(TrainingJobControllerTest, WritesTheStatusBeforeItActs) {
    TrainingJob fresh = make_running_job();
    fresh.status = {};
    bench.put(bench.cache.training_jobs(), fresh);
    reconcile();
    EXPECT_THAT(
        verbs(),
        ::testing::ElementsAre("apply_status trainingjobs", "create services", "create jobs"));
}

TEST_F(TrainingJobControllerTest, DoesNotActWhenTheStatusCannotBeWritten) {
    TrainingJob fresh = make_running_job();
    fresh.status = {};
    bench.put(bench.cache.training_jobs(), fresh);
    bench.client.failure = Error{ErrorCode::kUnavailable, "away"};
    EXPECT_FALSE(controller.reconcile(key));
    EXPECT_THAT(verbs(), ::testing::ElementsAre("apply_status trainingjobs"));
}

TEST_F(TrainingJobControllerTest, CreatesAJobOnceWhileTheCacheIsBehind) {
    TrainingJob fresh = make_running_job();
    fresh.status = {};
    bench.put(bench.cache.training_jobs(), fresh);
    ASSERT_TRUE(controller.reconcile(key));
    const std::size_t before = bench.client.calls.size();
    const Result<Reconciled> next = controller.reconcile(key);
    EXPECT_EQ(bench.client.calls.size(), before);
    EXPECT_TRUE(next->requeue_after.has_value());
}

TEST_F(TrainingJobControllerTest, ConditionsAreUnknownAfterAMinuteWithoutReportsAndNumbersStay) {
    bench.put(bench.cache.training_jobs(), make_running_job());
    run_its_pods();
    const SessionId session = bench.attach(make_sidecar_hello());
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    reconcile();
    const TrainingJob before = reconcile();
    EXPECT_EQ(condition(before, "DataReady"), "True Listed");
    ASSERT_TRUE(before.status.cache.has_value());
    bench.clock.advance(seconds{61});
    const TrainingJob after = reconcile();
    EXPECT_EQ(condition(after, "DataReady"), "Unknown NodesSilent");
    EXPECT_EQ(condition(after, "CacheAllocated"), "Unknown NodesSilent");
    EXPECT_EQ(after.status.cache->used_bytes, 60'000);
    EXPECT_EQ(after.status.cache->sampled_at, before.status.cache->sampled_at);
}

TEST_F(TrainingJobControllerTest, WaitsBrieflyForThePodsOfAFailedJob) {
    bench.put(bench.cache.training_jobs(), make_running_job());
    run_its_pods();
    reconcile();
    Job failed = make_child_job();
    failed.end = JobEnd{false, "BackoffLimitExceeded", "over", bench.clock.wall_now()};
    bench.put(bench.cache.jobs(), failed);
    reconcile();
    EXPECT_EQ(bench.client.count("remove"), 0U);
    Pod pod = make_running_pod();
    pod.phase = PodPhase::kFailed;
    pod.disruption = "EvictionByEvictionAPI";
    bench.put(bench.cache.pods(), pod);
    // An eviction costs no restart.
    EXPECT_EQ(reconcile().status.restarts, 0);
    EXPECT_EQ(bench.client.count("remove"), 1U);
}

// The pod terminates on a node that the watch of nodes has not shown yet.
TEST_F(TrainingJobControllerTest, AsksForAnUnknownNodeBeforeItsPodsAreLost) {
    bench.put(bench.cache.training_jobs(), make_running_job());
    bench.put(bench.cache.jobs(), make_child_job());
    Pod pod = make_running_pod("node-2");
    pod.meta.deleting_since = bench.clock.wall_now();
    bench.put(bench.cache.pods(), pod);
    bench.client.objects[{"", "node-2"}] = {};
    reconcile();
    EXPECT_EQ(bench.client.count("get"), 1U);
    EXPECT_EQ(bench.client.count("remove"), 0U);
    bench.client.objects.clear();
    EXPECT_EQ(reconcile().status.attempt, 2);
    EXPECT_EQ(bench.client.count("remove"), 1U);
}

TEST_F(TrainingJobControllerTest, StopsWaitingForPodsThatNeverAppear) {
    bench.put(bench.cache.training_jobs(), make_running_job());
    run_its_pods();
    reconcile();
    Job failed = make_child_job();
    failed.end = JobEnd{false, "BackoffLimitExceeded", "over", bench.clock.wall_now()};
    bench.put(bench.cache.jobs(), failed);
    bench.clock.advance(seconds{6});
    EXPECT_EQ(reconcile().status.restarts, 1);
}

TEST_F(TrainingJobControllerTest, DeletesAFinishedJobByUidAfterItsTtl) {
    TrainingJob job = make_running_job();
    job.spec.run_policy.ttl_seconds_after_finished = 60;
    bench.put(bench.cache.training_jobs(), job);
    run_its_pods();
    Job child = make_child_job();
    child.end = JobEnd{true, "CompletionsReached", "", bench.clock.wall_now()};
    bench.put(bench.cache.jobs(), child);
    EXPECT_EQ(condition(reconcile(), "Complete").substr(0, 5), "True ");
    bench.clock.advance(seconds{59});
    reconcile();
    EXPECT_THAT(bench.client.removed, ::testing::Not(::testing::Contains(key)));
    bench.clock.advance(seconds{2});
    reconcile();
    ASSERT_THAT(bench.client.removed, ::testing::Contains(key));
    const test::FakeApiClient::Call& removal = bench.client.calls.back();
    EXPECT_EQ(removal.plural, "trainingjobs");
    EXPECT_EQ(removal.body, "j1") << "the precondition spares another TrainingJob of the same name";
}

TEST_F(TrainingJobControllerTest, SuccessDuringSuspensionCounts) {
    TrainingJob job = make_running_job();
    bench.put(bench.cache.training_jobs(), job);
    run_its_pods();
    Job child = make_child_job();
    child.meta.resource_version = "7";
    bench.put(bench.cache.jobs(), child);
    reconcile();
    bench.client.newer_versions[child.meta.key()] = "8";  // the Job has succeeded
    job = bench.cache.training_jobs().store().get(key)->value;
    job.spec.suspend = true;
    bench.put(bench.cache.training_jobs(), job);
    bench.catch_up(bench.cache.training_jobs());
    reconcile();
    EXPECT_EQ(bench.client.count("remove"), 1U);
    EXPECT_TRUE(bench.client.removed.empty());
    child.meta.resource_version = "8";
    child.end = JobEnd{true, "CompletionsReached", "", bench.clock.wall_now()};
    bench.put(bench.cache.jobs(), child);
    bench.catch_up(bench.cache.jobs());
    EXPECT_EQ(condition(reconcile(), "Complete").substr(0, 5), "True ");
    EXPECT_TRUE(bench.client.removed.empty());
}

TEST_F(TrainingJobControllerTest, ReportsTheApiServersRefusalInTheNextRound) {
    TrainingJob job = make_running_job();
    bench.put(bench.cache.training_jobs(), job);
    bench.put(bench.cache.services(), [] {
        ObjectMeta service;
        service.ns = "ml";
        service.name = "mnist-ranks";
        service.labels = {{std::string{kJobLabel}, "mnist"}};
        service.owners = {{"stoker.dev/v1alpha1", "TrainingJob", "mnist", "j1", true}};
        return service;
    }());
    reconcile();
    bench.client.failure = Error{ErrorCode::kInvalidArgument, "spec.template: no such volume"};
    const Result<Reconciled> refused = controller.reconcile(key);
    ASSERT_TRUE(refused);
    bench.client.failure.reset();
    const TrainingJob after = reconcile();
    EXPECT_THAT(
        find_condition(after.status.conditions, "Finished")->message, HasSubstr("no such volume"));
}

TEST_F(TrainingJobControllerTest, NamesTheUnknownField) {
    TrainingJob fresh = make_running_job();
    fresh.status = {};
    bench.put(bench.cache.training_jobs(), fresh);
    bench.client.refused = {
        "jobs",
        Error{
            ErrorCode::kInvalidArgument,
            R"(strict decoding error: unknown field "spec.template.spec.affinity.nodeAffinty")"}};
    reconcile();
    const TrainingJob after = reconcile();
    EXPECT_EQ(condition(after, "Finished"), "False Invalid");
    EXPECT_EQ(
        find_condition(after.status.conditions, "Finished")->message,
        "spec.podTemplate.spec.affinity.nodeAffinty: unknown field");
    EXPECT_GT(bench.client.count("create"), 0U) << "the spec may have been mended";
}

// The next operator must send the same pin.
TEST_F(TrainingJobControllerTest, PinIsWrittenBeforeItIsSent) {
    TrainingJob job = make_running_job();
    job.spec.trainer.node_count = 2;
    bench.put(bench.cache.training_jobs(), job);
    run_its_pods();
    std::vector<std::string> told;
    SidecarLink link{{}, [] {}};
    link.send = [&](const Orders& orders) {
        told.push_back(domain::to_string(orders.pins.at(0).revision));
        EXPECT_THAT(verbs(), ::testing::ElementsAre("apply_status trainingjobs"));
        EXPECT_THAT(bench.client.calls.back().body, HasSubstr("00000000000000aa"));
    };
    const SessionId session = *bench.registry.attach(make_sidecar_hello(), link, bench.now());
    Report report = make_sidecar_report(1);
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    reconcile();
    report.sequence = 2;
    report.datasets[0].read_revision = "00000000000000aa";
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    const TrainingJob after = reconcile();
    EXPECT_EQ(after.status.datasets.at(0).revision, "00000000000000aa");
    EXPECT_THAT(told, ::testing::ElementsAre("00000000000000aa"));
}

// The second rank has no pod yet, so its node leads nothing.
TEST_F(TrainingJobControllerTest, PinWaitsForThePeersOfAllNodes) {
    TrainingJob job = make_running_job();
    job.spec.trainer.node_count = 2;
    bench.put(bench.cache.training_jobs(), job);
    run_its_pods();
    int pins = 0;
    SidecarLink link{{}, [] {}};
    link.send = [&](const Orders& orders) { pins += static_cast<int>(orders.pins.size()); };
    const SessionId session = *bench.registry.attach(make_sidecar_hello(), link, bench.now());
    Report report = make_sidecar_report(1);
    report.datasets[0].leader = true;
    report.datasets[0].read_revision = "00000000000000aa";
    report.datasets[0].peer_address = "10.0.0.1:7331";
    report.datasets[0].peer_generation = 1;
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    const TrainingJob after = reconcile();
    EXPECT_EQ(after.status.datasets.at(0).revision, "00000000000000aa");
    EXPECT_EQ(pins, 0);
    bench.clock.advance(PinHold::kHoldMax - std::chrono::seconds{1});
    reconcile();
    EXPECT_EQ(pins, 0);
    bench.clock.advance(std::chrono::seconds{1});
    reconcile();
    EXPECT_EQ(pins, 1);
}

}  // namespace
}  // namespace stoker::control
