#include "operator/controllers/cachepool/node_sweeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

    void look() {
        bench.report_node("node-1");
        ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    }

    // The next sweep order for the node's program.
    std::optional<SweepOrder> order() { return bench.report_node("node-1").sweep; }

    // Reports the sweep's result as the node's program.
    void finish(bool succeeded = true) {
        const std::string id = order().value().id;
        bench.report_node("node-1", [&](NodeReport& report) {
            report.sweeps = {{id, succeeded, succeeded ? "" : "disk on fire", 1}};
        });
        ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    }

    void delete_dataset() {
        bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
        sweeper.note_deleted(dataset);
    }

    // Completes the job while its sidecar is still attached.
    SessionId end_before_its_sidecar(TrainingJob job) {
        job.status.conditions = {{"Complete", ConditionStatus::kTrue, 1, {}, "Complete", ""}};
        bench.put(bench.cache.training_jobs(), job);
        const SessionId session = bench.attach(make_sidecar_hello());
        EXPECT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
        return session;
    }

    // Moves the dataset to another namespace, with no retention after its last use, and adds a job
    // that reads it.
    void share_with_a_reading_job() {
        bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
        Dataset shared = make_shared_digits();
        shared.status = dataset.status;
        shared.spec.retention_after_last_use_seconds = 0;
        bench.put(bench.cache.datasets(), shared);
        bench.put(bench.cache.training_jobs(), make_reading_job());
    }

    test::ControllerBench bench;
    Dataset dataset;
    int swept = 0;
    NodeSweeper sweeper{bench.parts, [this] { ++swept; }};
};

TEST_F(NodeSweeperTest, KeepsAnUnusedDatasetDuringRetention) {
    bench.clock.advance(hours{1});
    look();
    EXPECT_FALSE(order());
}

TEST_F(NodeSweeperTest, RemovesADatasetAfterRetentionAndNotifies) {
    dataset.spec.retention_after_last_use_seconds = 600;
    bench.put(bench.cache.datasets(), dataset);
    bench.clock.advance(seconds{601});
    look();
    ASSERT_TRUE(order());
    EXPECT_EQ(order()->pool, "nvme");
    EXPECT_EQ(order()->path, "/var/lib/stoker");
    EXPECT_THAT(order()->expired, ElementsAre("d1"));
    EXPECT_THAT(order()->kept, IsEmpty());
    finish();
    EXPECT_EQ(swept, 1);
    EXPECT_EQ(sweeper.counts().succeeded, 1U);
    EXPECT_TRUE(bench.ledger.is_gone("nvme", "node-1", "d1", *dataset.status.sampled_at));
    look();
    EXPECT_FALSE(order()) << "not swept again while the status is not written yet";
}

TEST_F(NodeSweeperTest, KeepsDatasetsInUseOrHeldByASidecar) {
    dataset.spec.retention_after_last_use_seconds = 0;
    bench.put(bench.cache.datasets(), dataset);
    bench.put(bench.cache.training_jobs(), make_running_job());
    look();
    EXPECT_FALSE(order());
    const SessionId session = end_before_its_sidecar(make_running_job());
    look();
    EXPECT_FALSE(order()) << "its sidecar is still there";
    bench.registry.detach(session, bench.now());
    look();
    EXPECT_TRUE(order());
}

TEST_F(NodeSweeperTest, GuestJobKeepsOnlySharedDatasets) {
    share_with_a_reading_job();
    bench.put(bench.cache.namespaces(), make_namespace("ml", {{"team", "vision"}}));
    look();
    EXPECT_FALSE(order()) << "a job uses it";
    end_before_its_sidecar(make_reading_job());
    look();
    EXPECT_FALSE(order()) << "its sidecar is still there";
    bench.put(bench.cache.training_jobs(), make_reading_job());
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    look();
    EXPECT_TRUE(order()) << "a job that may not read the Dataset does not keep its bytes";
}

TEST_F(NodeSweeperTest, SweepsTheNodesOfADeletedDataset) {
    delete_dataset();
    look();
    ASSERT_TRUE(order());
    EXPECT_THAT(order()->kept, IsEmpty());
    EXPECT_THAT(order()->expired, ElementsAre("d1")) << "recently written bytes are removed, too";
    finish();
    look();
    EXPECT_FALSE(order());
}

TEST_F(NodeSweeperTest, SweepsUnreportedBytesOfADeletedDataset) {
    dataset.status.placements = {};
    delete_dataset();
    look();
    EXPECT_FALSE(order()) << "the node holds no bytes of the Dataset";
    const auto measured = [](NodeReport& report) {
        report.pools[0].directories = {{"ml", "d1", Bytes{60'000}, false}};
    };
    bench.report_node("node-1", measured);
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    ASSERT_TRUE(order());
    EXPECT_THAT(order()->expired, ElementsAre("d1"));
    finish();
    bench.report_node("node-1", measured);
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    EXPECT_FALSE(order()) << "the bytes were measured before the sweep";
}

TEST_F(NodeSweeperTest, SweepsOnlyNodesWithAReadyPool) {
    delete_dataset();
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    EXPECT_FALSE(order()) << "the node program has not reported the pool yet";
    bench.report_node(
        "node-1", [](NodeReport& report) { report.pools[0].verdict = PoolVerdict::kNotEmpty; });
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    EXPECT_FALSE(order());
    bench.clock.advance(seconds{61});
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    EXPECT_FALSE(order()) << "the node program's report is old";
    look();
    EXPECT_TRUE(order());
}

TEST_F(NodeSweeperTest, FailedSweepIsCountedAndRetried) {
    delete_dataset();
    look();
    finish(false);
    EXPECT_EQ(sweeper.counts().failed, 1U);
    look();
    EXPECT_FALSE(order());
    EXPECT_EQ(sweeper.counts().failed, 1U) << "once";
    bench.clock.advance(minutes{6});
    look();
    look();
    EXPECT_TRUE(order());
    finish();
    EXPECT_EQ(sweeper.counts().succeeded, 1U);
}

TEST_F(NodeSweeperTest, UnfinishedSweepIsWithdrawnAndOrderedAgain) {
    delete_dataset();
    look();
    const std::string first = order().value().id;
    bench.clock.advance(minutes{11});
    look();
    EXPECT_FALSE(order());
    EXPECT_EQ(sweeper.counts().failed, 1U);
    look();
    EXPECT_NE(order().value().id, first);
}

TEST_F(NodeSweeperTest, DatasetDeletedUnderASidecarIsSweptWhenTheSidecarEnds) {
    const SessionId session = bench.attach(make_sidecar_hello());
    ASSERT_TRUE(bench.registry.report(session, make_sidecar_report(1), bench.now()));
    delete_dataset();
    look();
    EXPECT_FALSE(order());
    bench.registry.detach(session, bench.now());
    look();
    EXPECT_TRUE(order());
}

// The sidecar restarts, waits for a free lock, or cannot reach us: then neither lock nor stream
// shows the use, and the pod keeps reading.
TEST_F(NodeSweeperTest, DatasetDeletedUnderAPodStaysUntilThePodEnds) {
    Pod pod = make_running_pod();
    pod.node_directories = {"ml/d1"};
    bench.put(bench.cache.pods(), pod);
    delete_dataset();
    look();
    EXPECT_FALSE(order());
    pod.phase = PodPhase::kFailed;
    bench.put(bench.cache.pods(), pod);
    look();
    EXPECT_TRUE(order());
}

// The pod is not watched by the operator, or wrongly considered ended.
TEST_F(NodeSweeperTest, MountedDirectoriesStay) {
    delete_dataset();
    const auto mounted = [](NodeReport& report) {
        report.pools[0].directories = {{"ml", "d1", Bytes{60'000}, true}};
    };
    bench.report_node("node-1", mounted);
    ASSERT_TRUE(sweeper.reconcile(NodeSweeper::key()));
    EXPECT_FALSE(bench.report_node("node-1", mounted).sweep);
    look();
    EXPECT_TRUE(order());
}

TEST_F(NodeSweeperTest, DeletedDatasetStaysWhileAGuestPodReadsIt) {
    Pod pod = make_running_pod();
    pod.node_directories = {"data/d1", "../x", "data/..", "data"};
    bench.put(bench.cache.pods(), pod);
    bench.put(bench.cache.training_jobs(), make_reading_job());
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    bench.attach(make_sidecar_hello());
    bench.clock.advance(hours{7});
    look();
    ASSERT_TRUE(order()) << "the sweep of every six hours";
    EXPECT_THAT(order()->kept, Contains("data/d1"));
    EXPECT_THAT(order()->kept, Not(Contains(HasSubstr(".."))));
}

TEST_F(NodeSweeperTest, OddDatasetUidDoesNotBlockSweeps) {
    Hello hello = make_sidecar_hello();
    hello.mounts[0].dataset_uid = "../*";
    Report report = make_sidecar_report(1);
    report.datasets[0].dataset_uid = "../*";
    ASSERT_TRUE(bench.registry.report(bench.attach(hello), report, bench.now()));
    delete_dataset();
    look();
    EXPECT_TRUE(order());
}

TEST_F(NodeSweeperTest, PodKeepsNoDatasetThatItsJobMayNotRead) {
    share_with_a_reading_job();
    Pod pod = make_running_pod();
    pod.node_directories = {"data/d1"};
    bench.put(bench.cache.pods(), pod);
    bench.put(bench.cache.namespaces(), make_namespace("ml"));
    look();
    EXPECT_TRUE(order());
}

TEST_F(NodeSweeperTest, MakesRoomForABlockedGrant) {
    Allocation allocation;
    allocation.plan.sweeps = {{"nvme", "node-1", "d1", Bytes{60'000}}};
    bench.latest.put(allocation);
    look();
    ASSERT_TRUE(order());
    EXPECT_THAT(order()->expired, ElementsAre("d1"));
}

TEST_F(NodeSweeperTest, KeepsDirectoriesMountedByAFiller) {
    bench.cache.datasets().store().remove(dataset.meta.key(), "900", nullptr);
    dataset = make_shared_digits();
    dataset.spec.retention_after_last_use_seconds = 0;
    dataset.status.placements = {{"nvme", "node-1", 60'000, 60}};
    bench.put(bench.cache.datasets(), dataset);
    Pod filler = make_filler_pod(make_child_filler());
    bench.put(bench.cache.filler_pods(), filler);
    look();
    EXPECT_FALSE(order());
    filler.phase = PodPhase::kFailed;
    bench.put(bench.cache.filler_pods(), filler);
    look();
    EXPECT_TRUE(order());
}

}  // namespace
}  // namespace stoker::control
