#include "operator/controllers/cachepool/node_sweeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

NodePodSettings settings() {
    return {"stoker-system", "operator-0", "stoker-sidecar:test", "IfNotPresent"};
}

// One dataset with bytes on one node; no job uses it.
struct NodeSweeperTest : ::testing::Test {
    NodeSweeperTest() {
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        dataset = make_digits();
        dataset.meta.uid = "d1";
        dataset.status.placements = {{"nvme", "node-1", 60'000, 60}};
        dataset.status.sampled_at = bench.clock.wall_now();
        bench.put(bench.cache.datasets(), dataset);
    }

    std::vector<std::string> made() {
        std::vector<std::string> bodies;
        for (const auto& call : bench.client.calls) {
            if (call.verb == "create") {
                bodies.push_back(call.body);
            }
        }
        return bodies;
    }

    void finish_pod() {
        Pod pod = parse_pod(made().back()).value();
        pod.phase = PodPhase::kSucceeded;
        pod.meta.created_at = bench.clock.wall_now();
        bench.put(bench.cache.node_pods(), pod);
    }

    // The job is complete, and a sidecar of it still attached.
    SessionId end_before_its_sidecar(TrainingJob job) {
        job.status.conditions = {{"Complete", ConditionStatus::kTrue, 1, {}, "Complete", ""}};
        bench.put(bench.cache.training_jobs(), job);
        const SessionId session = bench.attach(make_agent_hello());
        EXPECT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
        return session;
    }

    // The bytes are of a dataset of another namespace instead, which keeps nothing after its last
    // use, and a job reads it.
    void share_with_a_reading_job() {
        bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
        Dataset shared = make_shared_digits();
        shared.status = dataset.status;
        shared.spec.retention_after_last_use_seconds = 0;
        bench.put(bench.cache.datasets(), shared);
        bench.put(bench.cache.training_jobs(), make_reading_job());
    }

    test::ControllerBench bench;
    AllocationBoard board;
    SweepLedger ledger;
    Dataset dataset;
    int swept = 0;
    NodeSweeper sweeper{
        {bench.cache, bench.registry, board, ledger, bench.client, bench.clock},
        settings(),
        [this] { ++swept; }};
};

TEST_F(NodeSweeperTest, LeavesADatasetAloneThatNobodyUsesNow) {
    bench.clock.advance(hours{1});
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty());
}

TEST_F(NodeSweeperTest, RemovesItAfterItsRetentionAndTellsThatItIsGone) {
    dataset.spec.retention_after_last_use_seconds = 600;
    bench.put(bench.cache.datasets(), dataset);
    bench.clock.advance(seconds{601});
    ASSERT_TRUE(sweeper.reconcile());
    ASSERT_EQ(made().size(), 1U);
    EXPECT_THAT(made()[0], HasSubstr(R"("-o","-name","d1")"));
    EXPECT_THAT(made()[0], Not(HasSubstr("/pool/ml/d1")));
    finish_pod();
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(swept, 1);
    EXPECT_EQ(sweeper.counts().succeeded, 1U);
    EXPECT_TRUE(ledger.is_gone("nvme", "node-1", "d1", *dataset.status.sampled_at));
    EXPECT_EQ(bench.client.count("remove"), 1U);
    bench.cache.node_pods().store().remove(
        {"stoker-system", parse_pod(made()[0])->meta.name}, "900", nullptr);
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U) << "not swept again while the status is not written yet";
}

TEST_F(NodeSweeperTest, LeavesWhatAJobUsesOrASidecarHolds) {
    dataset.spec.retention_after_last_use_seconds = 0;
    bench.put(bench.cache.datasets(), dataset);
    bench.put(bench.cache.training_jobs(), make_running_job());
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty());
    const SessionId session = end_before_its_sidecar(make_running_job());
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty()) << "its sidecar is still there";
    bench.registry.detach(session, bench.now());
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U);
}

TEST_F(NodeSweeperTest, AJobOfAnotherNamespaceKeepsOnlyWhatIsSharedWithIt) {
    share_with_a_reading_job();
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty()) << "a job uses it";
    end_before_its_sidecar(make_reading_job());
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty()) << "its sidecar is still there";
    bench.put(bench.cache.training_jobs(), make_reading_job());
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U) << "whoever may not use it cannot keep it either";
}

TEST_F(NodeSweeperTest, SweepsTheNodesOfADeletedDataset) {
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    sweeper.note_deleted(dataset);
    ASSERT_TRUE(sweeper.reconcile());
    ASSERT_EQ(made().size(), 1U);
    EXPECT_THAT(made()[0], Not(HasSubstr("/pool/ml/d1")));
    EXPECT_THAT(made()[0], HasSubstr(R"("-o","-name","d1")")) << "young bytes go, too";
    EXPECT_THAT(made()[0], HasSubstr(R"("nodeName":"node-1")"));
    finish_pod();
    ASSERT_TRUE(sweeper.reconcile());
    bench.cache.node_pods().store().remove(
        {"stoker-system", parse_pod(made()[0])->meta.name}, "901", nullptr);
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U);
}

TEST_F(NodeSweeperTest, ADatasetThatIsDeletedUnderASidecarGoesAfterIt) {
    const SessionId session = bench.attach(make_agent_hello());
    ASSERT_TRUE(bench.registry.report(session, make_agent_report(1), bench.now()));
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    sweeper.note_deleted(dataset);
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty());
    bench.registry.detach(session, bench.now());
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U);
}

// Its sidecar restarts, waits for a lock that is free for a moment, or cannot reach us: the lock
// and its stream say nothing then, and the pod reads on.
TEST_F(NodeSweeperTest, ADatasetThatIsDeletedUnderAPodStaysUntilThePodHasEnded) {
    Pod pod = make_running_pod();
    pod.node_directories = {"ml/d1"};
    bench.put(bench.cache.pods(), pod);
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    sweeper.note_deleted(dataset);
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_TRUE(made().empty());
    pod.phase = PodPhase::kFailed;
    bench.put(bench.cache.pods(), pod);
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U);
}

TEST_F(NodeSweeperTest, WhatAPodOfAnotherNamespaceReadsStaysWhenItsDatasetIsDeleted) {
    Pod pod = make_running_pod();
    pod.node_directories = {"data/d1", "../x", "data/..", "data"};
    bench.put(bench.cache.pods(), pod);
    bench.put(bench.cache.training_jobs(), make_reading_job());
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    bench.attach(make_agent_hello());
    bench.clock.advance(hours{7});
    ASSERT_TRUE(sweeper.reconcile());
    ASSERT_EQ(made().size(), 1U) << "the sweep of every six hours";
    EXPECT_THAT(made()[0], HasSubstr("/pool/data/d1"));
    EXPECT_THAT(made()[0], Not(HasSubstr("..")));
}

TEST_F(NodeSweeperTest, APodKeepsNoDatasetThatItsJobMayNotRead) {
    share_with_a_reading_job();
    Pod pod = make_running_pod();
    pod.node_directories = {"data/d1"};
    bench.put(bench.cache.pods(), pod);
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    ASSERT_TRUE(sweeper.reconcile());
    EXPECT_EQ(made().size(), 1U);
}

TEST_F(NodeSweeperTest, MakesRoomForAGrantThatIsHeldBack) {
    Allocation allocation;
    allocation.plan.sweeps = {{"nvme", "node-1", "d1", Bytes{60'000}}};
    board.put(allocation);
    ASSERT_TRUE(sweeper.reconcile());
    ASSERT_EQ(made().size(), 1U);
    EXPECT_THAT(made()[0], HasSubstr(R"("stoker.dev/expired":"d1")"));
}

TEST(SweepPod, HasNoRightsThatItDoesNotNeed) {
    const NodeSweep sweep{{"nvme", "node-1", "n1", "/mnt/nvme"}, {"ml/kept"}, {"x", "y"}};
    const std::string text = build_sweep_pod(sweep, settings(), std::nullopt).text();
    for (const char* part :
         {R"("capabilities":{"drop":["ALL"]})",
          R"("runAsNonRoot":true)",
          R"("runAsUser":65532)",
          R"("readOnlyRootFilesystem":true)",
          R"("automountServiceAccountToken":false)",
          R"("hostPath":{"path":"/mnt/nvme","type":"Directory"})"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
    const SweepPod pod = read_sweep_pod(parse_pod(text).value());
    EXPECT_EQ(pod.place, sweep.place);
    EXPECT_THAT(pod.expired, ElementsAre("x", "y"));
    EXPECT_EQ(pod.key, (ObjectKey{"stoker-system", sweep_pod_name(sweep.place)}));
}

}  // namespace
}  // namespace stoker::control
