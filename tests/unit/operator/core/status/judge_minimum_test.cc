#include <gtest/gtest.h>

#include "operator/core/status/judge_cache.h"

namespace stoker::control {
namespace {

JobAllocation allocation_of(Bytes minimum, Bytes guaranteed) {
    JobAllocation result;
    result.pool = "nvme";
    result.reason = AllocationReason::kGranted;
    result.minimum = minimum;
    result.guaranteed = guaranteed;
    return result;
}

TEST(JudgeMinimum, IsTrueIfQuotaAndNodesCoverIt) {
    const Condition judgement = judge_minimum(allocation_of(gib(2), gib(2)));
    EXPECT_EQ(judgement.status, ConditionStatus::kTrue);
    EXPECT_EQ(judgement.reason, "Guaranteed");
    EXPECT_EQ(judgement.message, "2Gi are guaranteed in pool nvme.");
}

TEST(JudgeMinimum, ReportsHowMuchIsCovered) {
    const Condition judgement = judge_minimum(allocation_of(gib(2), gib(1)));
    EXPECT_EQ(judgement.status, ConditionStatus::kFalse);
    EXPECT_EQ(judgement.reason, "NotCovered");
    EXPECT_EQ(
        judgement.message,
        "1Gi of 2Gi are guaranteed in pool nvme: the nominal quota of the datasets' namespace, or "
        "the room on the job's nodes, covers no more. The rest is granted while nobody else needs "
        "it.");
}

TEST(JudgeMinimum, IsUnknownWithoutPods) {
    JobAllocation waiting = allocation_of(gib(2), Bytes::zero());
    waiting.reason = AllocationReason::kWaitingForPods;
    EXPECT_EQ(judge_minimum(waiting).status, ConditionStatus::kUnknown);
}

}  // namespace
}  // namespace stoker::control
