#include "operator/core/view/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_clairvoyant.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::optional<Forecast> foresee_first(const TrainingJobView& view) {
    return foresee(use_of(view), view.datasets.datasets[0]);
}

TEST(Foresee, TakesTheShuffleOfTheSpecAndTheNodeOfEachPod) {
    const auto forecast = foresee_first(make_clairvoyant_view());
    ASSERT_TRUE(forecast);
    KnownReads reads = make_reads();
    reads.rank_members.clear();
    EXPECT_EQ(forecast->reads, reads);
    EXPECT_THAT(forecast->pod_nodes, ElementsAre("n1", "n2"));
    EXPECT_EQ(forecast->processes_per_pod, 2U);
}

TEST(Foresee, CountsProcessesAsTorchrunIsTold) {
    TrainingJobView view = make_clairvoyant_view();
    view.job.spec.trainer.processes_per_node = "auto";
    EXPECT_EQ(foresee_first(view)->processes_per_pod, 1U);
    view.job.spec.trainer.resources.limits["nvidia.com/gpu"] = "8";
    EXPECT_EQ(foresee_first(view)->processes_per_pod, 8U);
}

TEST(Foresee, SaysNothingWithPlacementHash) {
    EXPECT_FALSE(foresee_first(make_running_view()));
}

TEST(Foresee, KnowsNoNodesUntilEachPodOfTheAttemptHasOne) {
    TrainingJobView view = make_clairvoyant_view(2);
    view.pods[1].node_name.clear();
    EXPECT_THAT(foresee_first(view)->pod_nodes, IsEmpty()) << "a pod waits for a node";
    view.pods[1] = make_pod(view, 1, 1);
    EXPECT_THAT(foresee_first(view)->pod_nodes, IsEmpty()) << "a pod of the attempt before";
    view.pods[1] = make_pod(view, 2, 1);
    view.pods[1].phase = PodPhase::kFailed;
    EXPECT_THAT(foresee_first(view)->pod_nodes, IsEmpty()) << "a pod has ended";
    view.pods[1] = make_pod(view, 2, 1);
    view.pods[1].meta.deleting_since = wall(5);
    EXPECT_THAT(foresee_first(view)->pod_nodes, IsEmpty()) << "a pod ends";
    view.pods.pop_back();
    EXPECT_THAT(foresee_first(view)->pod_nodes, IsEmpty()) << "a pod is missing";
}

TEST(FindForecastBlocker, NamesWhatStandsInTheWay) {
    const TrainingJobView view = make_clairvoyant_view();
    const ResolvedDataset& dataset = view.datasets.datasets[0];
    EXPECT_TRUE(find_forecast_blocker(view.job, dataset).empty());
    ResolvedDataset foreign = dataset;
    foreign.ns = "data";
    EXPECT_EQ(find_forecast_blocker(view.job, foreign).reason, "OtherNamespace");
    EXPECT_FALSE(foresee(use_of(view), foreign));
    ResolvedDataset alone = dataset;
    alone.peers = false;
    EXPECT_EQ(find_forecast_blocker(view.job, alone).reason, "PeersOff");
    TrainingJob job = view.job;
    job.spec.trainer.node_count = 1;
    EXPECT_EQ(find_forecast_blocker(job, dataset).reason, "OneNode");
    job.spec.trainer.node_count = 8'192;
    EXPECT_TRUE(find_forecast_blocker(job, dataset).empty()) << "16,384 ranks";
    job.spec.trainer.node_count = 8'193;
    EXPECT_EQ(find_forecast_blocker(job, dataset).reason, "TooManyRanks");
}

TEST(PlaceRanks, RanksOfOnePodFollowEachOther) {
    const Forecast forecast = *foresee_first(make_clairvoyant_view());
    EXPECT_EQ(place_ranks(forecast, {{"n1", "", 1}, {"n2", "", 1}}), make_reads());
    const auto among_others =
        place_ranks(forecast, {{"n0", "", 1}, {"n1", "", 1}, {"n15", "", 1}, {"n2", "", 1}});
    EXPECT_THAT(among_others->rank_members, ElementsAre(1, 1, 3, 3));
}

TEST(PlaceRanks, NeedEveryNodeAsAMember) {
    const Forecast forecast = *foresee_first(make_clairvoyant_view());
    EXPECT_FALSE(place_ranks(forecast, {{"n1", "", 1}, {"n3", "", 1}}));
    EXPECT_FALSE(place_ranks(forecast, {}));
}

TEST(HasReadOtherwise, CountsUntilTheJobIsSuspended) {
    TrainingJob job = make_training_job();
    EXPECT_FALSE(has_read_otherwise(job));
    job.status.conditions = {
        {"ClairvoyantPlacement", ConditionStatus::kFalse, 3, {}, "OtherReader", ""}};
    EXPECT_FALSE(has_read_otherwise(job));
    job.status.conditions[0].reason = "ReadsDiffer";
    EXPECT_TRUE(has_read_otherwise(job));
    job.meta.generation = 4;
    EXPECT_TRUE(has_read_otherwise(job)) << "a field that may change while the job runs";
    job.spec.suspend = true;
    EXPECT_FALSE(has_read_otherwise(job));
}

}  // namespace
}  // namespace stoker::control
