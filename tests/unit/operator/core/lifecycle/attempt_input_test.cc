#include "operator/core/lifecycle/attempt_input.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/fake_kueue.h"

namespace stoker::control {
namespace {

TEST(AttemptInput, SetsPreferredNodesAndKueuePlacement) {
    TrainingJobView view = make_admitted_view();
    Holding holding;
    holding.dataset_uid = "uid-imagenet";
    holding.pool = "nvme";
    holding.node = "n2";
    holding.resident = gib(1);
    view.holdings = {holding};
    const JobInput input = input_of_attempt(view, 3, std::nullopt);
    EXPECT_EQ(input.attempt, 3);
    EXPECT_EQ(input.preferred_nodes, (std::vector<PreferredNode>{{"n2", 100}}));
    EXPECT_EQ(input.placement.node_selector.at("gpu"), "a100");
    EXPECT_EQ(input.active_deadline_seconds, std::nullopt);
}

TEST(AttemptInput, ClampsTheDeadlineToWhatKubernetesAccepts) {
    const TrainingJobView view = make_view();
    EXPECT_EQ(input_of_attempt(view, 1, -5).active_deadline_seconds, 1);
    EXPECT_EQ(input_of_attempt(view, 1, 60).active_deadline_seconds, 60);
    EXPECT_EQ(
        input_of_attempt(view, 1, INT64_MAX).active_deadline_seconds,
        std::numeric_limits<std::int32_t>::max());
}

}  // namespace
}  // namespace stoker::control
