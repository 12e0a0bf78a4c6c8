#include "operator/core/sweep/plan_sweeps.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WallTime kNow{hours{10'000}};

SweepPlace place(const std::string& node) {
    return {"nvme", node, "/mnt/nvme"};
}

SweepDataset dataset(const std::string& uid, Bytes on_n1, Duration unused = hours{1}) {
    SweepDataset result;
    result.ns = "ml";
    result.uid = uid;
    result.last_use = kNow - unused;
    result.holdings = {{"nvme", "n1", on_n1}};
    return result;
}

SweepRun run_of(const NodeSweep& sweep, SweepPhase phase, Duration age = minutes{1}) {
    return {sweep.place, "id-" + sweep.place.node, sweep.expired, phase, kNow - age};
}

SweepView make_view() {
    SweepView view;
    view.places = {place("n1"), place("n2")};
    view.datasets = {dataset("a", gib(1)), dataset("b", gib(2))};
    view.watching_since = kNow - hours{1};
    return view;
}

SweepPlan plan(const SweepView& view) {
    return plan_sweeps(view, kNow, {});
}

TEST(PlanSweeps, PlansNothingIfNothingIsDue) {
    EXPECT_EQ(plan(make_view()), SweepPlan{});
}

TEST(PlanSweeps, SweepsPlacesOfDeletedDatasetsAndListsTheRest) {
    SweepView view = make_view();
    view.deleted[place("n1")] = {"gone"};
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n1"), {"ml/a", "ml/b"}, {"gone"}}));
}

TEST(PlanSweeps, ExistingDatasetIsNotDeleted) {
    SweepView view = make_view();
    view.deleted[place("n1")] = {"a", "*"};
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.deleted[place("n1")].insert("gone");
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n1"), {"ml/a", "ml/b"}, {"gone"}}));
}

TEST(PlanSweeps, SweepsEveryPlaceRegularly) {
    SweepView view = make_view();
    view.watching_since = kNow - hours{6};
    EXPECT_THAT(plan(view).start, SizeIs(2));
    view.swept[place("n1")] = kNow - hours{5};
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n2"), {"ml/a", "ml/b"}, {}}));
}

TEST(PlanSweeps, RemovesBytesAfterTheirRetention) {
    SweepView view = make_view();
    view.datasets[0].retention_seconds = 3600;
    view.datasets[1].retention_seconds = 3601;
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n1"), {"ml/b"}, {"a"}}));
}

TEST(PlanSweeps, NeverRemovesADatasetInUse) {
    SweepView view = make_view();
    for (SweepDataset& each : view.datasets) {
        each.retention_seconds = 0;
        each.in_use = true;
    }
    view.needs = {{"nvme", "n1", "a"}, {"nvme", "n1", "b"}};
    EXPECT_THAT(plan(view).start, IsEmpty());
}

TEST(PlanSweeps, NeverRemovesADirectoryWithASidecar) {
    SweepView view = make_view();
    view.datasets.resize(1);
    view.datasets[0].retention_seconds = 0;
    view.guards = {{"n1", "ml", "a"}, {"n1", "ml", "deleted"}, {"n2", "ml", "elsewhere"}};
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.deleted[place("n1")] = {"deleted"};
    EXPECT_THAT(plan(view).start, IsEmpty()) << "the sweep starts when the sidecar has ended";
    view.watching_since = kNow - hours{6};
    EXPECT_THAT(plan(view).start, Contains(NodeSweep{place("n1"), {"ml/a", "ml/deleted"}, {}}));
    view.guards.erase({"n1", "ml", "deleted"});
    view.watching_since = kNow;
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n1"), {"ml/a"}, {"deleted"}}));
}

TEST(PlanSweeps, RemovesDatasetsNamedByTheAllocationPlan) {
    SweepView view = make_view();
    view.datasets = {dataset("young", gib(4), minutes{5}), dataset("old", gib(2), hours{50})};
    view.needs = {{"nvme", "n1", "old"}, {"nvme", "n2", "young"}, {"other", "n1", "young"}};
    EXPECT_THAT(plan(view).start, ElementsAre(NodeSweep{place("n1"), {"ml/young"}, {"old"}}));
    view.needs = {{"nvme", "n1", "unknown"}};
    EXPECT_THAT(plan(view).start, IsEmpty()) << "not there";
}

TEST(PlanSweeps, StartsOneRunPerPlaceUpToALimit) {
    SweepLimits limits;
    limits.runs_at_once = 4;
    SweepView view = make_view();
    view.places.clear();
    for (int i = 0; i < 9; ++i) {
        view.places.push_back(place("n" + std::to_string(i)));
        view.deleted[view.places.back()] = {"gone"};
    }
    const SweepPlan first = plan_sweeps(view, kNow, limits);
    EXPECT_THAT(first.start, SizeIs(4));
    for (const NodeSweep& sweep : first.start) {
        view.runs.push_back(run_of(sweep, SweepPhase::kRunning));
    }
    EXPECT_THAT(plan_sweeps(view, kNow, limits).start, IsEmpty());
    view.runs[0].phase = SweepPhase::kSucceeded;
    const SweepPlan next = plan_sweeps(view, kNow, limits);
    EXPECT_THAT(next.start, SizeIs(1));
    EXPECT_THAT(next.finished, ElementsAre(view.runs[0]));
}

TEST(PlanSweeps, NeverStartsTwoRunsOnOneNode) {
    SweepView view = make_view();
    const SweepPlace other{"ssd", "n1", "/mnt/ssd"};
    view.places = {place("n1"), other};
    view.deleted = {{place("n1"), {"gone"}}, {other, {"gone"}}};
    const SweepPlan first = plan(view);
    ASSERT_THAT(first.start, SizeIs(1));
    view.runs = {run_of(first.start[0], SweepPhase::kRunning)};
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.runs[0].phase = SweepPhase::kFailed;
    ASSERT_THAT(plan(view).start, SizeIs(1));
    EXPECT_EQ(plan(view).start[0].place, other) << "a failed run holds up its own place only";
}

TEST(PlanSweeps, RetriesAFailedRunLater) {
    SweepView view = make_view();
    view.deleted[place("n1")] = {"gone"};
    const NodeSweep sweep = plan(view).start.at(0);
    view.runs = {run_of(sweep, SweepPhase::kFailed)};
    EXPECT_EQ(plan(view), SweepPlan{});
    view.runs = {run_of(sweep, SweepPhase::kFailed, minutes{6})};
    EXPECT_THAT(plan(view).forgotten, ElementsAre(view.runs[0]));
    view.runs.clear();
    EXPECT_THAT(plan(view).start, SizeIs(1));
}

TEST(PlanSweeps, GivesUpARunThatDoesNotEnd) {
    SweepView view = make_view();
    view.deleted[place("n1")] = {"gone"};
    const NodeSweep sweep = plan(view).start.at(0);
    view.runs = {run_of(sweep, SweepPhase::kRunning, minutes{9})};
    EXPECT_EQ(plan(view), SweepPlan{});
    view.runs = {run_of(sweep, SweepPhase::kRunning, minutes{11})};
    EXPECT_THAT(plan(view).given_up, ElementsAre(view.runs[0]));
    view.runs.clear();
    EXPECT_THAT(plan(view).start, SizeIs(1));
}

TEST(PlanSweeps, SweepsNothingIfTheListOfKeptDirectoriesWouldBeIncomplete) {
    SweepView view = make_view();
    view.deleted[place("n1")] = {"gone"};
    view.datasets[0].uid = "*";
    EXPECT_THAT(plan(view).start, IsEmpty());
    EXPECT_FALSE(plan(view).refused.empty());
    view.datasets[0].uid = "..";
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.datasets[0].uid = "";
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.datasets[0].uid = std::string(64, 'a');
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.datasets[0].uid = "a";
    view.guards = {{"n1", "ml", "a/b"}};
    EXPECT_THAT(plan(view).start, IsEmpty());
    view.guards.clear();
    SweepLimits limits;
    limits.kept_max = 2;
    EXPECT_THAT(plan_sweeps(view, kNow, limits).start, IsEmpty());
    EXPECT_FALSE(plan_sweeps(view, kNow, limits).refused.empty());
    limits.kept_max = 3;
    EXPECT_THAT(plan_sweeps(view, kNow, limits).start, SizeIs(1));
}

TEST(PlanSweeps, DirectoriesInUseCountOnlyForTheirOwnNode) {
    SweepView view = make_view();
    view.deleted = {{place("n1"), {"gone"}}, {place("n2"), {"gone"}}};
    view.guards = {{"n1", "ml", "x"}, {"n1", "ml", "y"}};
    SweepLimits limits;
    limits.kept_max = 3;
    const SweepPlan made = plan_sweeps(view, kNow, limits);
    ASSERT_THAT(made.start, SizeIs(1));
    EXPECT_EQ(made.start[0].place, place("n2"));
}

TEST(SweepGuard, AcceptsOnlyPathsOfNodeDirectories) {
    EXPECT_EQ(guard_of("n1", "ml/d1"), (SweepGuard{"n1", "ml", "d1"}));
    for (const char* text :
         {"", "/", "ml", "ml/", "/d1", "ml/..", "../d1", "ml/a/b", "ml/*", "ml/A"}) {
        EXPECT_FALSE(guard_of("n1", text)) << text;
    }
    EXPECT_FALSE(guard_of("n1", "ml/" + std::string(64, 'd')));
}

// A node program accepts orders of at most 16 MiB.
TEST(SweepLimits, LetAnOrderFitIntoAMessage) {
    constexpr std::size_t kEntryBytesMax = 63 + 1 + 63 + 3;
    EXPECT_LT(SweepLimits{}.kept_max * kEntryBytesMax, mib(16).count());
}

// In any view, datasets that are in use, have a sidecar or are not due are on the list to keep.
TEST(PlanSweepsProperty, KeepsEveryDatasetInUseOrNotDue) {
    Prng prng(test_seed());
    for (int round = 0; round < 2000; ++round) {
        SweepView view;
        view.watching_since = kNow - hours{static_cast<int>(prng.below(12))};
        for (std::uint64_t n = 0; n < 1 + prng.below(4); ++n) {
            view.places.push_back(place("n" + std::to_string(n)));
        }
        for (std::uint64_t d = 0; d < prng.below(8); ++d) {
            SweepDataset next = dataset(
                "d" + std::to_string(d),
                gib(prng.below(3)),
                minutes{static_cast<int>(prng.below(500))});
            next.in_use = prng.below(2) == 0;
            if (prng.below(2) == 0) {
                next.retention_seconds = static_cast<std::int64_t>(prng.below(20'000));
            }
            next.holdings[0].node = "n" + std::to_string(prng.below(4));
            if (prng.below(4) == 0) {
                view.guards.insert({next.holdings[0].node, next.ns, next.uid});
            }
            view.datasets.push_back(next);
        }
        if (prng.below(2) == 0) {
            view.needs = {
                {"nvme", "n" + std::to_string(prng.below(4)), "d" + std::to_string(prng.below(8))}};
        }
        if (prng.below(2) == 0) {  // wrong if the dataset exists
            view.deleted[place("n" + std::to_string(prng.below(4)))] = {
                "d" + std::to_string(prng.below(8))};
        }
        const SweepPlan made = plan(view);
        for (const NodeSweep& sweep : made.start) {
            for (const SweepDataset& each : view.datasets) {
                const bool kept = std::binary_search(
                    sweep.kept.begin(), sweep.kept.end(), each.ns + "/" + each.uid);
                const bool expired =
                    std::binary_search(sweep.expired.begin(), sweep.expired.end(), each.uid);
                ASSERT_NE(kept, expired) << each.uid;
                if (each.in_use || view.guards.contains({sweep.place.node, each.ns, each.uid}) ||
                    (!each.retention_seconds && view.needs.empty())) {
                    ASSERT_TRUE(kept) << each.uid;
                }
            }
        }
        std::reverse(view.datasets.begin(), view.datasets.end());
        std::reverse(view.places.begin(), view.places.end());
        EXPECT_EQ(plan(view), made) << "the order does not matter";
    }
}

TEST(PlanSweeps, RetentionTooLongForADurationNeverEnds) {
    for (const std::int64_t limit : {9'999'999'999, std::int64_t{1} << 53U, INT64_MAX}) {
        SweepView view = make_view();
        view.datasets[0].retention_seconds = limit;
        EXPECT_EQ(plan(view), SweepPlan{}) << limit;
    }
}

}  // namespace
}  // namespace stoker::control
