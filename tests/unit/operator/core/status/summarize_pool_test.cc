#include "operator/core/status/summarize_pool.h"

#include <gtest/gtest.h>

#include "operator/core/view/totals.h"
#include "tests/unit/operator/core/make_node_report.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

std::string reason(const std::vector<Condition>& conditions, const std::string& type) {
    const Condition* found = find_condition(conditions, type);
    return found == nullptr ? "(absent)" : found->reason;
}

CachePoolView make_pool_view() {
    CachePoolView view;
    view.pool = make_pool();
    view.pool.spec.node_selector = {{"gpu", "yes"}};
    for (const std::string name : {"n1", "n2", "n3"}) {
        view.nodes.push_back(make_node(name));
        view.nodes.back().meta.labels = {{"gpu", "yes"}};
    }
    view.nodes[1].ready = false;
    view.nodes[2].meta.labels = {{"gpu", "no"}};
    view.programs.listening_since = moment(0).steady;
    view.programs.reports = {make_known(make_node_report("n1", make_pool_state("/mnt/nvme")))};
    return view;
}

// Pool nodes n1 to n4, each with the given report of its node program.
CachePoolView make_pool_view(const std::vector<PoolState>& states) {
    CachePoolView view;
    view.pool = make_pool();
    view.programs.listening_since = moment(0).steady;
    for (std::size_t i = 0; i < states.size(); ++i) {
        const std::string name = fmt::format("n{}", i + 1);
        view.nodes.push_back(make_node(name));
        view.programs.reports.insert(make_known(make_node_report(name, states[i])));
    }
    return view;
}

Condition ready_of(const CachePoolView& view, std::int64_t second = 1) {
    return *find_condition(summarize_cache_pool(view, moment(second)).conditions, "Ready");
}

TEST(SummarizeCachePool, CountsItsNodesAndBytes) {
    CachePoolView view = make_pool_view();
    PoolState state = make_pool_state("/mnt/nvme");
    state.directories = {{"ml", "a", gib(2), true}, {"ml", "b", gib(1), false}};
    NodeReport report = make_node_report("n1", state);
    report.received_wall = wall(6);
    view.programs.reports = {make_known(std::move(report))};
    view.holdings = {
        {"nvme", "n1", "a", gib(50), {}},  // ignored: the node program measured this disk
        {"nvme", "n2", "b", gib(4), {}},
        {"ssd", "n1", "c", gib(99), {}}};
    view.granted = gib(10);
    view.sampled_at = wall(7);
    const CachePoolStatus status = summarize_cache_pool(view, moment(8));
    EXPECT_EQ(status.nodes_total, 2);
    EXPECT_EQ(status.nodes_ready, 1);
    EXPECT_EQ(status.capacity_bytes, count_of(gib(100)));
    EXPECT_EQ(status.used_bytes, count_of(gib(7)));
    EXPECT_EQ(status.granted_bytes, count_of(gib(10)));
    EXPECT_EQ(status.columns, (CachePoolColumns{"1/2", "7Gi", "10Gi"}));
    EXPECT_TRUE(is_true(status.conditions, "Ready"));
    EXPECT_EQ(status.sampled_at, wall(7));
    view.pool.status = status;
    EXPECT_EQ(summarize_cache_pool(view, moment(9)), status);
}

TEST(IsTooEarly, IsTrueUntilAllNodesHaveReportedToANewOperator) {
    CachePoolView view = make_pool_view({make_pool_state("/mnt/nvme")});
    const auto at = [](std::int64_t second) { return moment(second).steady; };
    view.programs.reports.clear();
    EXPECT_FALSE(is_too_early(view, at(1))) << "the pool has no status yet";
    view.pool.status.conditions = {{"Ready", ConditionStatus::kTrue, 0, {}, "Ready", ""}};
    view.pool.meta.generation = 0;
    EXPECT_TRUE(is_too_early(view, at(1)));
    EXPECT_TRUE(is_too_early(view, at(60)));
    EXPECT_FALSE(is_too_early(view, at(61))) << "the node is silent by now";
    view.pool.meta.generation = 1;
    EXPECT_FALSE(is_too_early(view, at(1))) << "the pool's spec has changed";
}

TEST(IsTooEarly, IsFalseOnceAllNodesHaveReported) {
    CachePoolView view = make_pool_view({make_pool_state("/mnt/nvme")});
    view.pool.status.conditions = {{"Ready", ConditionStatus::kTrue, 0, {}, "Ready", ""}};
    view.pool.meta.generation = 0;
    EXPECT_FALSE(is_too_early(view, moment(1).steady));
}

TEST(SummarizeCachePool, UsesSidecarReportsIfTheDiskWasNotMeasured) {
    CachePoolView view =
        make_pool_view({make_pool_state("/mnt/nvme", PoolVerdict::kFailed, "I/O error")});
    view.holdings = {{"nvme", "n1", "a", gib(3), {}}};
    EXPECT_EQ(summarize_cache_pool(view, moment(1)).used_bytes, count_of(gib(3)));
}

TEST(SummarizeCachePool, SampledAtIsTheNewestReport) {
    CachePoolView view = make_pool_view();
    view.sampled_at = wall(7);
    NodeReport report = make_node_report("n1", make_pool_state("/mnt/nvme"));
    report.received_wall = wall(9);
    view.programs.reports = {make_known(std::move(report))};
    EXPECT_EQ(summarize_cache_pool(view, moment(10)).sampled_at, wall(9));
}

TEST(SummarizeCachePool, NamesANonEmptyDirectoryAndTheFix) {
    const Condition ready = ready_of(make_pool_view(
        {make_pool_state("/mnt/nvme", PoolVerdict::kFailed, "I/O error"),
         make_pool_state("/mnt/nvme", PoolVerdict::kNotEmpty, "/mnt/nvme is not empty: photos"),
         make_pool_state("/mnt/nvme", PoolVerdict::kNotEmpty, "/mnt/nvme is not empty: videos")}));
    EXPECT_EQ(ready.status, ConditionStatus::kFalse);
    EXPECT_EQ(ready.reason, "NotEmpty");
    EXPECT_EQ(
        ready.message,
        "Node n2: /mnt/nvme is not empty: photos. Nothing there was touched. Choose an empty "
        "directory for spec.volume.hostPath.path, or move the files away. The same on 1 more.");
}

TEST(SummarizeCachePool, ReportsOtherDirectoryErrors) {
    const std::pair<PoolVerdict, const char*> cases[] = {
        {PoolVerdict::kOtherPool, "OtherPool"},
        {PoolVerdict::kRefused, "PathRefused"},
        {PoolVerdict::kFailed, "NodeFailing"}};
    for (const auto& [verdict, reason] : cases) {
        const Condition ready =
            ready_of(make_pool_view({make_pool_state("/mnt/nvme", verdict, "words")}));
        EXPECT_EQ(ready.status, ConditionStatus::kFalse) << reason;
        EXPECT_EQ(ready.reason, reason);
        EXPECT_TRUE(ready.message.starts_with("Node n1: words.")) << ready.message;
    }
}

TEST(SummarizeCachePool, NamesUpToThreeNodesWithoutAProgram) {
    const PoolState silent = make_pool_state("/mnt/nvme");
    CachePoolView view = make_pool_view({silent, silent, silent, silent, silent});
    view.programs.nodes_with_pod = {"n2"};
    const Condition ready = ready_of(view, 61);
    EXPECT_EQ(ready.status, ConditionStatus::kFalse);
    EXPECT_EQ(ready.reason, "NodeProgramMissing");
    EXPECT_TRUE(ready.message.starts_with(
        "No report from the node program on n1 (no pod), n2 (its pod is silent), n3 (no pod) and 2 "
        "more. Check the pods of its DaemonSet"))
        << ready.message;
    EXPECT_EQ(summarize_cache_pool(view, moment(61)).columns.nodes, "0/5");
}

TEST(SummarizeCachePool, IsReadyWithSomeNodesAndNamesTheWorstNodes) {
    CachePoolView view = make_pool_view(
        {make_pool_state("/mnt/nvme"),
         make_pool_state("/mnt/nvme"),
         make_pool_state("/mnt/nvme", PoolVerdict::kFailed, "I/O error")});
    const Condition ready = ready_of(view);
    EXPECT_EQ(ready.status, ConditionStatus::kTrue);
    EXPECT_EQ(ready.reason, "Ready");
    EXPECT_EQ(ready.message, "2 of 3 nodes are ready. Node n3: I/O error.");
    view.nodes[2].ready = false;
    EXPECT_EQ(ready_of(view).message, "2 of 3 nodes are ready.");
}

TEST(SummarizeCachePool, IsUnknownUntilNodesHaveReported) {
    CachePoolView view = make_pool_view({make_pool_state("/mnt/before")});
    const Condition ready = ready_of(view);
    EXPECT_EQ(ready.status, ConditionStatus::kUnknown);
    EXPECT_EQ(ready.reason, "NodesNotHeard");
}

TEST(SummarizeCachePool, ReportsWhyNoBytesAreGranted) {
    CachePoolView view = make_pool_view();
    view.nodes[0].ready = false;
    EXPECT_EQ(reason(summarize_cache_pool(view, moment(1)).conditions, "Ready"), "NoNodeReady");
    view.nodes.clear();
    EXPECT_EQ(reason(summarize_cache_pool(view, moment(1)).conditions, "Ready"), "NoNodes");
    view.pool.spec.stop_policy = StopPolicy::kHoldAndDrain;
    const CachePoolStatus stopped = summarize_cache_pool(view, moment(1));
    EXPECT_EQ(reason(stopped.conditions, "Ready"), "Stopped");
    EXPECT_EQ(find_condition(stopped.conditions, "Ready")->message, "stopPolicy is HoldAndDrain.");
    view.pool.spec.has_csi = true;
    EXPECT_EQ(reason(summarize_cache_pool(view, moment(1)).conditions, "Ready"), "Invalid");
}

CacheQuotaView make_quota_view() {
    CacheQuotaView view;
    view.quota = make_quota("q", "nvme", gib(10));
    view.quotas = {view.quota};
    view.pool_exists = true;
    return view;
}

TEST(SummarizeCacheQuota, SumsTheChargesOfItsJobs) {
    CacheQuotaView view = make_quota_view();
    view.charges = {
        {{"team", "small"}, "nvme", gib(1)},
        {{"team", "large"}, "nvme", gib(5)},
        {{"team", "none"}, "nvme", Bytes::zero()},
        {{"team", "elsewhere"}, "ssd", gib(9)},
        {{"other", "theirs"}, "nvme", gib(9)}};
    view.uses = {
        {"other", "nvme", gib(9), gib(2), Bytes::zero()},
        {"team", "ssd", gib(9), Bytes::zero(), gib(4)},
        // Includes 1Gi of a dataset that no job uses now.
        {"team", "nvme", gib(7), gib(1), gib(2)}};
    view.marginals = {{{"team", "large"}, "2.7"}, {{"other", "small"}, "9"}};
    const CacheQuotaStatus status = summarize_cache_quota(view, moment(1));
    EXPECT_EQ(status.used_bytes, count_of(gib(7)));
    EXPECT_EQ(status.borrowed_bytes, count_of(gib(1)));
    EXPECT_EQ(status.lent_bytes, count_of(gib(2)));
    EXPECT_EQ(status.weighted_share, 700);
    ASSERT_EQ(status.jobs.size(), 2U);
    EXPECT_EQ(status.jobs[0].name, "large");
    EXPECT_EQ(status.jobs[0].marginal_per_gib, "2.7");
    EXPECT_EQ(status.jobs[1].marginal_per_gib, "");
    EXPECT_EQ(status.columns, (CacheQuotaColumns{"7Gi", "1Gi", "2Gi", "70%"}));
    EXPECT_TRUE(is_true(status.conditions, "Active"));
}

TEST(SummarizeCacheQuota, ReportsWhyItIsNotInForce) {
    CacheQuotaView view = make_quota_view();
    view.pool_exists = false;
    EXPECT_EQ(reason(summarize_cache_quota(view, moment(1)).conditions, "Active"), "PoolNotFound");
    view.pool_exists = true;
    view.quota.spec.stop_policy = StopPolicy::kHold;
    EXPECT_EQ(reason(summarize_cache_quota(view, moment(1)).conditions, "Active"), "Stopped");
    CacheQuota older = make_quota("older", "nvme", gib(1));
    view.quota.meta.created_at = wall(5);
    view.quotas = {view.quota, older};
    view.charges = {{{"team", "job"}, "nvme", gib(1)}};
    view.uses = {{"team", "nvme", gib(1), Bytes::zero(), Bytes::zero()}};
    const CacheQuotaStatus duplicate = summarize_cache_quota(view, moment(6));
    EXPECT_EQ(reason(duplicate.conditions, "Active"), "Duplicate");
    EXPECT_EQ(duplicate.used_bytes, 0);
    view.quota.spec.lending_limit = gib(100);
    EXPECT_EQ(reason(summarize_cache_quota(view, moment(1)).conditions, "Active"), "Invalid");
}

TEST(SummarizeCacheQuota, ShareOfAZeroQuotaIsZero) {
    CacheQuotaView view = make_quota_view();
    view.quota.spec.nominal_quota = Bytes::zero();
    EXPECT_EQ(summarize_cache_quota(view, moment(1)).columns.share, "0%");
}

TEST(SummarizeCacheQuota, ClampsAnOversizedShare) {
    CacheQuotaView view = make_quota_view();
    view.quota.spec.nominal_quota = Bytes{1};
    view.uses = {{"team", "nvme", Bytes::unlimited(), Bytes::unlimited(), Bytes::zero()}};
    EXPECT_EQ(summarize_cache_quota(view, moment(1)).weighted_share, 2147483647);
}

}  // namespace
}  // namespace stoker::control
