#include "operator/core/view/node_fitness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_node_report.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;

// The pool's only node; its last report is from second 100.
struct NodeFitnessTest : ::testing::Test {
    NodeFitnessTest() {
        pool.spec.node_selector = {{"gpu", "yes"}};
        node.meta.labels = {{"gpu", "yes"}};
        programs.listening_since = moment(0).steady;
    }

    void say(PoolState state) {
        NodeReport report = make_node_report("n1", std::move(state));
        report.received_at = moment(100).steady;
        programs.reports = {make_known(std::move(report))};
    }

    NodeVerdict judge(std::int64_t second) {
        const auto verdicts =
            judge_nodes(pool, {node, make_node("without labels")}, programs, moment(second).steady);
        EXPECT_EQ(verdicts.size(), 1U);
        return verdicts.at(0);
    }

    CachePool pool = make_pool();
    Node node = make_node("n1");
    NodeProgramView programs;
};

TEST_F(NodeFitnessTest, FollowsTheProgramsVerdict) {
    const std::pair<PoolVerdict, NodeFitness> cases[] = {
        {PoolVerdict::kReady, NodeFitness::kReady},
        {PoolVerdict::kNotEmpty, NodeFitness::kNotEmpty},
        {PoolVerdict::kOtherPool, NodeFitness::kOtherPool},
        {PoolVerdict::kRefused, NodeFitness::kPathRefused},
        {PoolVerdict::kFailed, NodeFitness::kFailing},
        {PoolVerdict::kUnknown, NodeFitness::kWaiting}};
    for (const auto& [verdict, fitness] : cases) {
        say(make_pool_state("/mnt/nvme", verdict, "why"));
        EXPECT_EQ(judge(160), (NodeVerdict{"n1", fitness, "why"})) << to_string(verdict);
    }
}

TEST_F(NodeFitnessTest, SilentProgramIsMissing) {
    say(make_pool_state("/mnt/nvme"));
    EXPECT_EQ(judge(160).fitness, NodeFitness::kReady);
    EXPECT_EQ(judge(161).fitness, NodeFitness::kProgramMissing);
}

TEST_F(NodeFitnessTest, ProgramWithoutAReportIsMissingAfterAMinute) {
    EXPECT_EQ(judge(60).fitness, NodeFitness::kWaiting);
    EXPECT_EQ(judge(61).fitness, NodeFitness::kProgramMissing);
    programs.listening_since.reset();
    EXPECT_EQ(judge(61).fitness, NodeFitness::kWaiting) << "the node program cannot call yet";
}

TEST_F(NodeFitnessTest, IgnoresReportsAboutAnotherPathOrPool) {
    say(make_pool_state("/mnt/before"));
    EXPECT_EQ(judge(101).fitness, NodeFitness::kWaiting);
    PoolState other = make_pool_state("/mnt/nvme");
    other.pool = "ssd";
    say(other);
    EXPECT_EQ(judge(101).fitness, NodeFitness::kWaiting);
}

TEST_F(NodeFitnessTest, ReportsANodeThatIsNotReadyInKubernetes) {
    say(make_pool_state("/mnt/nvme"));
    node.ready = false;
    EXPECT_EQ(judge(101).fitness, NodeFitness::kNodeNotReady);
}

}  // namespace
}  // namespace stoker::control
