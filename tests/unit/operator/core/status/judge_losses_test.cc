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

std::vector<ResolvedDataset> resolved(bool peers) {
    std::vector<ResolvedDataset> datasets(2);
    datasets[0].name = "labels";
    datasets[1].name = "images";
    datasets[1].peers = peers;
    return datasets;
}

std::optional<Condition> judge_alone(const TrainingJobSpec& spec) {
    return judge_losses(spec, resolved(false));
}

TEST(JudgeLosses, WarnsOfImportanceOnSeveralNodesWithoutPeers) {
    const auto warning = judge_alone(spec_of(4, Contract::kImportance));
    ASSERT_TRUE(warning.has_value());
    EXPECT_EQ(warning->status, ConditionStatus::kFalse);
    EXPECT_EQ(warning->reason, "OwnNodeOnly");
    EXPECT_EQ(
        warning->message,
        "Dataset images has contract Importance on 4 nodes, and nodes tell each other losses only "
        "where they share samples (spec.peers Auto, no volume): after the 5 full epochs at the "
        "start each node has no loss for about 24% of the samples and reads those in every epoch.");
}

TEST(JudgeLosses, DoesNotWarnIfPeersShareLosses) {
    const TrainingJobSpec spec = spec_of(4, Contract::kImportance);
    EXPECT_FALSE(judge_losses(spec, resolved(true)).has_value());
    EXPECT_FALSE(judge_losses(spec, {}).has_value()) << "the dataset is not known yet";
    auto others = resolved(true);
    others[0].peers = false;
    EXPECT_FALSE(judge_losses(spec, others).has_value())
        << "the dataset is read under another contract";
}

TEST(JudgeLosses, UsesTheNumberOfFullEpochsThatTheJobSets) {
    TrainingJobSpec spec = spec_of(2, Contract::kImportance);
    spec.datasets[1].parameters[Contract::kImportance].numbers["warmupEpochs"] = 1;
    EXPECT_THAT(judge_alone(spec)->message, HasSubstr("about 50% of"));
}

TEST(JudgeLosses, ImportanceOfFamilyIowaHasOneFullEpoch) {
    TrainingJobSpec iowa = spec_of(4, Contract::kImportance);
    iowa.datasets[1].parameters[Contract::kImportance].words["family"] = "Iowa";
    EXPECT_THAT(judge_alone(iowa)->message, HasSubstr("after the full epoch at the start"));
    EXPECT_THAT(judge_alone(iowa)->message, HasSubstr("about 75% of"));
}

TEST(JudgeLosses, DoesNotWarnOnOneNodeOrForOtherContracts) {
    EXPECT_FALSE(judge_alone(spec_of(1, Contract::kImportance)).has_value()) << "one node";
    EXPECT_FALSE(judge_alone(spec_of(4, Contract::kWindowed)).has_value());
    EXPECT_FALSE(judge_alone(spec_of(4, Contract::kReplicate)).has_value());
}

}  // namespace
}  // namespace stoker::control
