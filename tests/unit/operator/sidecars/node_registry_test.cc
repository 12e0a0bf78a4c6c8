#include "operator/sidecars/node_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const PoolOrder kPool{"nvme", "/mnt/nvme"};

struct NodeRegistryTest : ::testing::Test {
    NodeReport word(const std::string& node) const {
        NodeReport report;
        report.node = node;
        report.received_at = now;
        PoolState pool;
        pool.pool = kPool.pool;
        pool.path = kPool.path;
        pool.verdict = PoolVerdict::kReady;
        report.pools = {pool};
        return report;
    }

    NodeOrders say(const NodeReport& report) { return registry.report(report).value(); }

    NodeNews last_news() { return std::exchange(news, {}); }

    TimePoint now{hours{1}};
    std::vector<PoolOrder> pools{kPool};
    NodeNews news;
    NodeRegistry registry{
        {4, hours{1}},
        [this](const std::string&) { return pools; },
        [this](const NodeNews& told) { news = told; }};
};

TEST_F(NodeRegistryTest, AnswersWithThePoolsOfTheNode) {
    const NodeOrders orders = say(word("n1"));
    EXPECT_THAT(orders.pools, ElementsAre(kPool));
    EXPECT_FALSE(orders.sweep);
    EXPECT_EQ(orders.next_call_seconds, 5U);
    EXPECT_EQ(registry.all().at("n1")->pools, word("n1").pools);
    EXPECT_EQ(registry.counts().reports, 1U);
}

TEST_F(NodeRegistryTest, RepeatsASweepUntilItsResultArrives) {
    const SweepOrder order{"7", "nvme", "/mnt/nvme", {"ml/d1"}, {"d2"}};
    registry.order_sweep("n1", order);
    for (int i = 0; i < 2; ++i) {
        const NodeOrders orders = say(word("n1"));
        EXPECT_EQ(orders.sweep, order);
        EXPECT_EQ(orders.next_call_seconds, 2U);
    }
    EXPECT_FALSE(say(word("n2")).sweep) << "another node's";
    NodeReport done = word("n1");
    done.sweeps = {{"7", true, "", 3}};
    const NodeOrders orders = say(done);
    EXPECT_FALSE(orders.sweep);
    EXPECT_THAT(orders.confirmed_sweeps, ElementsAre("7"));
    EXPECT_TRUE(last_news().sweeps);
    EXPECT_THAT(registry.take_results(), ElementsAre(done.sweeps[0]));
    EXPECT_THAT(registry.take_results(), IsEmpty());
}

TEST_F(NodeRegistryTest, ConfirmsARepeatedResultAgain) {
    registry.order_sweep("n1", {"7", "nvme", "/mnt/nvme", {}, {}});
    NodeReport done = word("n1");
    done.sweeps = {{"7", true, "", 3}, {"of a leader before us", true, "", 0}};
    say(done);
    last_news();
    EXPECT_THAT(say(done).confirmed_sweeps, ElementsAre("7", "of a leader before us"));
    EXPECT_FALSE(last_news().sweeps);
    EXPECT_EQ(registry.take_results().size(), 1U);
}

TEST_F(NodeRegistryTest, IgnoresAResultOfAnotherNode) {
    registry.order_sweep("n1", {"7", "nvme", "/mnt/nvme", {}, {}});
    NodeReport false_report = word("n2");
    false_report.sweeps = {{"7", true, "", 3}};
    say(false_report);
    EXPECT_THAT(registry.take_results(), IsEmpty());
    EXPECT_TRUE(say(word("n1")).sweep);
}

TEST_F(NodeRegistryTest, WithdrawnSweepIsNotSent) {
    registry.order_sweep("n1", {"7", "nvme", "/mnt/nvme", {}, {}});
    registry.withdraw_sweep("n1", "6");
    EXPECT_TRUE(say(word("n1")).sweep);
    registry.withdraw_sweep("n1", "7");
    EXPECT_FALSE(say(word("n1")).sweep);
}

TEST_F(NodeRegistryTest, SweepsNoPoolThatTheNodeHasLeft) {
    registry.order_sweep("n1", {"7", "nvme", "/mnt/nvme", {}, {}});
    pools = {{"nvme", "/mnt/other"}};
    EXPECT_FALSE(say(word("n1")).sweep);
    pools.clear();
    EXPECT_FALSE(say(word("n1")).sweep);
}

TEST_F(NodeRegistryTest, NotifiesControllersOfVerdictsAndMountsButNotOfByteCounts) {
    NodeReport report = word("n1");
    say(report);
    EXPECT_TRUE(last_news().verdicts);
    report.pools[0].directories = {{"ml", "d1", gib(1), false}};
    say(report);
    EXPECT_FALSE(last_news().any());
    report.pools[0].directories[0].mounted = true;
    say(report);
    NodeNews told = last_news();
    EXPECT_TRUE(told.mounts);
    EXPECT_FALSE(told.verdicts);
    report.pools[0].verdict = PoolVerdict::kFailed;
    say(report);
    EXPECT_TRUE(last_news().verdicts);
    report.received_at += seconds{61};
    say(report);
    EXPECT_TRUE(last_news().verdicts) << "the pool is back";
}

TEST_F(NodeRegistryTest, RestartedProgramKeepsItsEarlierReport) {
    say(word("n1"));
    last_news();
    NodeReport started = word("n1");
    started.pools.clear();
    say(started);
    EXPECT_FALSE(last_news().any());
    EXPECT_EQ(registry.all().at("n1")->pools, word("n1").pools);
    pools.clear();
    say(started);
    EXPECT_THAT(registry.all().at("n1")->pools, IsEmpty()) << "the node has left the pool";
}

TEST_F(NodeRegistryTest, RejectsImpossibleReportsAndTooManyNodes) {
    NodeReport nameless = word("");
    EXPECT_EQ(registry.report(nameless).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(registry.counts().reports_refused, 1U);
    for (const char* node : {"n1", "n2", "n3", "n4"}) {
        say(word(node));
    }
    EXPECT_EQ(registry.report(word("n5")).error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(registry.all().size(), 4U);
    say(word("n4"));
    registry.forget("n1");
    say(word("n5"));
}

TEST_F(NodeRegistryTest, KeepsTheLastReportOfASilentNodeForAWhile) {
    say(word("n1"));
    registry.forget_silent(now + hours{1});
    EXPECT_EQ(registry.all().size(), 1U);
    registry.forget_silent(now + hours{1} + seconds{1});
    EXPECT_THAT(registry.all(), IsEmpty());
}

TEST_F(NodeRegistryTest, RemembersTheStartOfListening) {
    EXPECT_FALSE(registry.listening_since());
    registry.listen(now);
    registry.listen(now + seconds{5});
    EXPECT_EQ(registry.listening_since(), now);
}

TEST(NodeRegistryPace, LargeClustersReportLessOften) {
    NodeRegistry registry{{}, [](const std::string&) { return std::vector<PoolOrder>{}; }, {}};
    NodeReport report;
    NodeOrders orders;
    for (int i = 0; i < 2000; ++i) {
        report.node = "n" + std::to_string(i);
        orders = registry.report(report).value();
    }
    EXPECT_EQ(orders.next_call_seconds, 10U);
}

}  // namespace
}  // namespace stoker::control
