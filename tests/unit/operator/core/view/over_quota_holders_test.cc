#include "operator/core/view/over_quota_holders.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

const Reclaim kReclaim{"nvme", "n1", "uid-imagenet", gib(5), gib(2), 30, "data"};

TEST(FindOverQuotaHolders, NamesTheLeadersPod) {
    ClusterView cluster = make_cluster();
    const std::vector<OverQuotaHolder> holders = find_over_quota_holders(cluster, {kReclaim});
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].pod, (ObjectKey{"team", "resnet-a1-0-xyzab"}));
    EXPECT_EQ(holders[0].job, (ObjectKey{"team", "resnet"}));
    EXPECT_EQ(holders[0].dataset, "train");
    // With two pods on the node, the result names the leader's pod.
    cluster.jobs[0].pods[1].edit().node_name = "n1";
    SidecarReport leader = make_report(make_running_view(), 1, 1);
    leader.node = "n1";
    cluster.reports = {leader};
    EXPECT_EQ(find_over_quota_holders(cluster, {kReclaim}).at(0).pod.name, "resnet-a1-1-xyzab");
}

TEST(FindOverQuotaHolders, FindsNoHolderWithoutAPod) {
    ClusterView cluster = make_cluster();
    cluster.jobs[0].pods[0].edit().phase = PodPhase::kFailed;
    EXPECT_TRUE(find_over_quota_holders(cluster, {kReclaim}).empty());
    EXPECT_TRUE(find_over_quota_holders(make_cluster(), {{"ssd", "n1", "uid-imagenet", {}, {}, 0}})
                    .empty());
}

TEST(HoldBack, HoldsBackTheNamespaceThatPaysForBytesReturnedLate) {
    const std::vector<OverQuotaHolder> late =
        find_over_quota_holders(make_cluster(), {kReclaim, kReclaim});
    const std::vector<HeldBack> held = hold_back(late);
    ASSERT_EQ(held.size(), 1U);
    EXPECT_EQ(held[0].pool, "nvme");
    EXPECT_EQ(held[0].ns, "data");
    EXPECT_EQ(
        held[0].why,
        "Pod resnet-a1-0-xyzab on node n1 keeps 5Gi of dataset train and may keep 2Gi; until it "
        "has given the rest back, namespace data gets no more bytes.");
    EXPECT_EQ(
        say_reclaimed(late[0]), "3Gi of dataset train go back on node n1 within 30 s; 2Gi stay.");
}

}  // namespace
}  // namespace stoker::control
