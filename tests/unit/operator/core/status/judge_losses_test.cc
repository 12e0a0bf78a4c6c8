#include "operator/core/status/judge_losses.h"

#include <gmock/gmock.h>

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

TrainingJobSpec spec_of(std::int32_t nodes, Contract contract) {
    TrainingJobSpec spec;
    spec.trainer.node_count = nodes;
    spec.datasets.resize(2);
    spec.datasets[0].name = "labels";
    spec.datasets[1].name = "images";
    spec.datasets[1].contract = contract;
    return spec;
}

TEST(JudgeLosses, WarnsOfImportanceOnSeveralNodes) {
    const auto warning = judge_losses(spec_of(4, Contract::kImportance));
    ASSERT_TRUE(warning.has_value());
    EXPECT_EQ(warning->status, ConditionStatus::kFalse);
    EXPECT_EQ(warning->reason, "OwnNodeOnly");
    EXPECT_EQ(
        warning->message,
        "Dataset images has contract Importance on 4 nodes, and losses do not travel between "
        "nodes: after the 5 full epochs at the start each node has no loss for about 24% of the "
        "samples and reads those in every epoch. Importance saves most on one node.");
}

TEST(JudgeLosses, UsesTheNumberOfFullEpochsThatTheJobSets) {
    TrainingJobSpec spec = spec_of(2, Contract::kImportance);
    spec.datasets[1].parameters[Contract::kImportance].numbers["warmupEpochs"] = 1;
    EXPECT_THAT(judge_losses(spec)->message, HasSubstr("about 50% of"));
}

TEST(JudgeLosses, HasNothingToSayOtherwise) {
    EXPECT_FALSE(judge_losses(spec_of(1, Contract::kImportance)).has_value()) << "one node";
    EXPECT_FALSE(judge_losses(spec_of(4, Contract::kWindowed)).has_value());
    EXPECT_FALSE(judge_losses(spec_of(4, Contract::kReplicate)).has_value());
    TrainingJobSpec iowa = spec_of(4, Contract::kImportance);
    iowa.datasets[1].parameters[Contract::kImportance].words["family"] = "Iowa";
    EXPECT_FALSE(judge_losses(iowa).has_value()) << "validation decides about family Iowa";
}

}  // namespace
}  // namespace stoker::control
