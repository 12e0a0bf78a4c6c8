#include "operator/core/plan_preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WallTime kNow{seconds{1769860800}};

PreparationTarget target_of(const std::string& node, const std::string& boot = "b1") {
    return {node, node + "-uid", boot, "/var/lib/stoker"};
}

PreparationPod pod_of(const PreparationTarget& target, PodPhase phase, Duration age = seconds{2}) {
    return {{"stoker-system", preparation_pod_name(target)}, target, phase, false, kNow - age};
}

TEST(PlanPreparation, PreparesEveryNodeOnce) {
    PreparationView view;
    view.wanted = {target_of("a"), target_of("b")};
    EXPECT_THAT(
        plan_preparation(view, kNow, {}).create, ElementsAre(target_of("a"), target_of("b")));
    view.pods = {pod_of(target_of("a"), PodPhase::kRunning)};
    view.done = {target_of("b")};
    EXPECT_EQ(plan_preparation(view, kNow, {}), PreparationPlan{});
}

TEST(PlanPreparation, TakesASucceededPodAwayAndRemembers) {
    PreparationView view;
    view.wanted = {target_of("a")};
    view.pods = {pod_of(target_of("a"), PodPhase::kSucceeded)};
    const PreparationPlan plan = plan_preparation(view, kNow, {});
    EXPECT_THAT(plan.finished, ElementsAre(target_of("a")));
    EXPECT_THAT(plan.remove, ElementsAre(view.pods[0].key));
    EXPECT_THAT(plan.create, IsEmpty());
}

TEST(PlanPreparation, APlanThatWasCarriedOutIsAFixpoint) {
    PreparationView view;
    view.wanted = {target_of("a"), target_of("b")};
    for (const PreparationTarget& target : plan_preparation(view, kNow, {}).create) {
        view.pods.push_back(pod_of(target, PodPhase::kPending, seconds{0}));
    }
    EXPECT_EQ(plan_preparation(view, kNow, {}), PreparationPlan{});
    for (PreparationPod& pod : view.pods) {
        pod.phase = PodPhase::kSucceeded;
    }
    const PreparationPlan plan = plan_preparation(view, kNow, {});
    view.done.insert(plan.finished.begin(), plan.finished.end());
    view.pods.clear();
    EXPECT_EQ(plan_preparation(view, kNow, {}), PreparationPlan{});
}

TEST(PlanPreparation, PreparesANodeAgainAfterAReboot) {
    PreparationView view;
    view.wanted = {target_of("a", "b2")};
    view.done = {target_of("a", "b1")};
    EXPECT_THAT(plan_preparation(view, kNow, {}).create, ElementsAre(target_of("a", "b2")));
}

TEST(PlanPreparation, LeavesAFailedPodToBeReadAndThenTriesAgain) {
    PreparationView view;
    view.wanted = {target_of("a")};
    view.pods = {pod_of(target_of("a"), PodPhase::kFailed, seconds{59})};
    PreparationPlan plan = plan_preparation(view, kNow, {});
    EXPECT_THAT(plan.failed, ElementsAre(target_of("a")));
    EXPECT_THAT(plan.remove, IsEmpty());
    view.pods = {pod_of(target_of("a"), PodPhase::kFailed, seconds{61})};
    plan = plan_preparation(view, kNow, {});
    EXPECT_THAT(plan.remove, SizeIs(1));
    EXPECT_THAT(plan.create, IsEmpty());
    view.pods.clear();
    EXPECT_THAT(plan_preparation(view, kNow, {}).create, SizeIs(1));
}

TEST(PlanPreparation, GivesUpAPodThatDoesNotStart) {
    PreparationView view;
    view.wanted = {target_of("a")};
    view.pods = {pod_of(target_of("a"), PodPhase::kPending, minutes{6})};
    const PreparationPlan plan = plan_preparation(view, kNow, {});
    EXPECT_THAT(plan.failed, ElementsAre(target_of("a")));
    EXPECT_THAT(plan.remove, SizeIs(1));
}

TEST(PlanPreparation, RemovesPodsOfNodesThatLeftThePool) {
    PreparationView view;
    view.pods = {pod_of(target_of("a"), PodPhase::kRunning)};
    const PreparationPlan plan = plan_preparation(view, kNow, {});
    EXPECT_THAT(plan.remove, SizeIs(1));
    EXPECT_THAT(plan.failed, IsEmpty());
}

TEST(PlanPreparation, WaitsForAPodToGoBeforeItMakesTheNextOfThatName) {
    PreparationView view;
    view.wanted = {target_of("a")};
    view.pods = {pod_of(target_of("a"), PodPhase::kFailed)};
    view.pods[0].deleting = true;
    EXPECT_EQ(plan_preparation(view, kNow, {}), PreparationPlan{});
}

TEST(PlanPreparation, RunsAFewPodsAtATime) {
    PreparationView view;
    for (int i = 0; i < 50; ++i) {
        view.wanted.insert(target_of("node-" + std::to_string(i)));
    }
    EXPECT_THAT(plan_preparation(view, kNow, {.pods_at_once = 4}).create, SizeIs(4));
    view.pods = {pod_of(target_of("node-7"), PodPhase::kRunning)};
    EXPECT_THAT(plan_preparation(view, kNow, {.pods_at_once = 4}).create, SizeIs(3));
}

TEST(PreparationPodName, IsTheSameForTheSameTargetOnly) {
    EXPECT_EQ(preparation_pod_name(target_of("a")), preparation_pod_name(target_of("a")));
    EXPECT_NE(preparation_pod_name(target_of("a")), preparation_pod_name(target_of("a", "b2")));
    EXPECT_NE(preparation_pod_name(target_of("a")), preparation_pod_name(target_of("b")));
}

}  // namespace
}  // namespace stoker::control
