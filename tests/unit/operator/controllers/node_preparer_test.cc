#include "operator/controllers/cachepool/node_preparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NodePodSettings settings() {
    return {"stoker-system", "operator-0", "stoker-sidecar:test", "IfNotPresent"};
}

struct NodePreparerTest : ::testing::Test {
    NodePreparerTest() {
        bench.put(bench.cache.pools(), make_nvme());
        bench.put(bench.cache.nodes(), make_ready_node("node-1"));
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pods(), make_running_pod());
        bench.put(bench.cache.training_jobs(), make_running_job());
    }

    // The last pod that was made, as the kubelet ends it.
    Pod made_pod(PodPhase phase) {
        for (auto call = bench.client.calls.rbegin(); call != bench.client.calls.rend(); ++call) {
            if (call->verb == "create") {
                Pod pod = parse_pod(call->body).value();
                pod.phase = phase;
                pod.meta.created_at = bench.clock.wall_now();
                return pod;
            }
        }
        return {};
    }

    void prepare_once() {
        ASSERT_TRUE(preparer.reconcile());
        const Pod pod = made_pod(PodPhase::kSucceeded);
        bench.put(bench.cache.node_pods(), pod);
        ASSERT_TRUE(preparer.reconcile());
        bench.cache.node_pods().store().remove(pod.meta.key(), "500", nullptr);
        bench.client.calls.clear();
    }

    test::ControllerBench bench;
    NodePreparer preparer{bench.cache, bench.registry, bench.client, bench.clock, settings()};
};

TEST_F(NodePreparerTest, MakesOnePodForANodeAndTakesItAway) {
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 1U);
    const Pod pod = made_pod(PodPhase::kSucceeded);
    EXPECT_EQ(pod.node_name, "node-1");
    bench.put(bench.cache.node_pods(), pod);
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("remove"), 1U);
    EXPECT_THAT(preparer.prepared_nodes(make_nvme()), ElementsAre("node-1"));
    bench.cache.node_pods().store().remove(pod.meta.key(), "500", nullptr);
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 1U);
}

TEST_F(NodePreparerTest, LeavesNodesAloneThatAreNotReadyOrNotOfThePool) {
    Node node = make_ready_node("node-1");
    node.ready = false;
    bench.put(bench.cache.nodes(), node);
    CachePool pool = make_nvme();
    pool.spec.node_selector = {{"disk", "nvme"}};
    bench.put(bench.cache.nodes(), make_ready_node("node-2"));
    bench.put(bench.cache.pools(), pool);
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 0U);
}

TEST_F(NodePreparerTest, PreparesAgainAfterAReboot) {
    prepare_once();
    Node node = make_ready_node("node-1");
    node.boot_id = "boot-2";
    bench.put(bench.cache.nodes(), node);
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 1U);
}

TEST_F(NodePreparerTest, PreparesAgainWhenASidecarCannotWriteButNotAllTheTime) {
    prepare_once();
    const SessionId session = bench.attach(make_agent_hello());
    ReportBody report = make_agent_report(1);
    report.datasets[0].admitting = false;
    ASSERT_TRUE(bench.registry.report(session, report, bench.now()));
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 0U);
    bench.clock.advance(minutes{6});
    ASSERT_TRUE(preparer.reconcile());
    EXPECT_EQ(bench.client.count("create"), 1U);
}

TEST_F(NodePreparerTest, ItsPodGoesWithTheOperatorsPod) {
    Object own;
    own.key = {"stoker-system", "operator-0"};
    own.uid = "own-uid";
    bench.client.objects[own.key] = own;
    ASSERT_TRUE(preparer.reconcile());
    const Pod pod = made_pod(PodPhase::kPending);
    ASSERT_EQ(pod.meta.owners.size(), 1U);
    EXPECT_EQ(pod.meta.owners[0].uid, "own-uid");
}

TEST_F(NodePreparerTest, ATryWhoseAnswerWasLostIsNoError) {
    bench.client.failure = Error{ErrorCode::kAlreadyExists, "it is there"};
    EXPECT_TRUE(preparer.reconcile());
    bench.client.failure = Error{ErrorCode::kUnavailable, "away"};
    EXPECT_FALSE(preparer.reconcile());
}

TEST(PreparePod, HasNoRightsThatItDoesNotNeed) {
    const PreparationTarget target{"node-1", "n1", "b1", "/mnt/nvme/stoker"};
    const std::string text = build_prepare_pod(target, settings(), std::nullopt).text();
    for (const char* part :
         {R"("capabilities":{"drop":["ALL"]})",
          R"("readOnlyRootFilesystem":true)",
          R"("allowPrivilegeEscalation":false)",
          R"("automountServiceAccountToken":false)",
          R"("runAsGroup":65532)",
          R"("hostPath":{"path":"/mnt/nvme/stoker","type":"DirectoryOrCreate"})"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_THAT(parse_pod(text)->meta.owners, IsEmpty());
}

TEST(PreparePod, CanBeReadBack) {
    const PreparationTarget target{"node-1", "n1", "b1", "/mnt/nvme/stoker"};
    const Json json = build_prepare_pod(target, settings(), std::nullopt);
    const PreparationPod pod = read_prepare_pod(parse_pod(json.text()).value());
    EXPECT_EQ(pod.target, target);
    EXPECT_EQ(pod.key, (ObjectKey{"stoker-system", preparation_pod_name(target)}));
}

}  // namespace
}  // namespace stoker::control
