#include "operator/core/sweep/plan_fillers.h"

#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/time_format.h"
#include "tests/unit/operator/core/make_filler.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const FillerPlace kFirst{"nvme", "n1"};
const FillerPlace kSecond{"nvme", "n2"};

// A view with one filler on n1, which is needed.
FillerView make_filler_view() {
    FillerView view;
    view.dataset = make_shared_dataset();
    view.jobs = {make_filler_job(view.dataset, kFirst)};
    view.needed[kFirst] = digest_of(view.jobs[0]);
    return view;
}

FillerPlan quiet(FillerPlan plan) {
    plan.look_again.reset();
    return plan;
}

void mark(Job& job, std::int64_t second) {
    job.meta.annotations[std::string{kIdleSinceAnnotation}] = format_time(wall(second));
}

TEST(GuestPlaces, AreNodesWithPodsOfOtherNamespaces) {
    JobUse guest = make_guest();
    JobUse own = make_guest();
    own.job.edit().meta.ns = "data";
    own.pods[0].edit().node_name = "n7";
    const Dataset dataset = make_shared_dataset();
    EXPECT_THAT(guest_places(dataset, {guest, own}), ElementsAre(kFirst, kSecond));
    guest.pods[0].edit().phase = PodPhase::kPending;
    EXPECT_THAT(guest_places(dataset, {guest}), ElementsAre(kFirst, kSecond)) << "any phase";
    guest.pods[0].edit().node_name.clear();
    EXPECT_THAT(guest_places(dataset, {guest}), ElementsAre(kSecond));
    guest.pods[1].edit().phase = PodPhase::kSucceeded;
    EXPECT_THAT(guest_places(dataset, {guest}), IsEmpty());
    EXPECT_THAT(guest_places(dataset, {make_filler_use(dataset)}), IsEmpty());
}

TEST(PlanFillers, CreatesAFillerForAGuest) {
    FillerView view = make_filler_view();
    view.jobs.clear();
    EXPECT_THAT(plan_fillers(view, wall(10)).create, ElementsAre(kFirst));
    view.dataset.meta.deleting_since = wall(5);
    EXPECT_EQ(quiet(plan_fillers(view, wall(10))), FillerPlan{});
}

TEST(PlanFillers, LeavesAWorkingFillerAlone) {
    EXPECT_EQ(quiet(plan_fillers(make_filler_view(), wall(10))), FillerPlan{});
}

TEST(PlanFillers, ReplacesASilentFiller) {
    FillerView view = make_filler_view();
    view.silent[kFirst] = seconds{299};
    EXPECT_THAT(plan_fillers(view, wall(449)).remove, IsEmpty());
    EXPECT_EQ(plan_fillers(view, wall(449)).look_again, seconds{1});
    view.silent[kFirst] = seconds{300};
    EXPECT_EQ(plan_fillers(view, wall(450)).remove.size(), 1U);
}

TEST(PlanFillers, ReplacesAFillerThatListedBeforeTheRun) {
    FillerView view = make_filler_view();
    const auto replaced = [&](const std::string& made) {
        view.jobs[0].meta.annotations[std::string{kFillerRunAnnotation}] = made;
        return !plan_fillers(view, wall(1000)).remove.empty();
    };
    EXPECT_FALSE(replaced("")) << "no run needs it";
    view.runs[kFirst] = wall(500);
    EXPECT_TRUE(replaced(""));
    EXPECT_TRUE(replaced("yesterday"));
    EXPECT_TRUE(replaced(format_time(wall(499))));
    EXPECT_FALSE(replaced(format_time(wall(500))));
    EXPECT_FALSE(replaced(format_time(wall(900))));
    EXPECT_TRUE(replaced(format_time(wall(9000)))) << "by a clock that was wrong";
    view.runs[kFirst] = wall(9000);
    EXPECT_FALSE(replaced(format_time(wall(9000))));
}

TEST(PlanFillers, RemovesAnIdleFillerAfterTheGrace) {
    FillerView view = make_filler_view();
    view.needed.clear();
    const FillerJob job{view.jobs[0].meta.name, view.jobs[0].meta.uid};
    FillerPlan plan = plan_fillers(view, wall(100));
    EXPECT_THAT(plan.mark, ElementsAre(FillerMark{job, wall(100)}));
    EXPECT_THAT(plan.remove, IsEmpty());
    EXPECT_EQ(plan.look_again, kFillerGrace);
    mark(view.jobs[0], 100);
    plan = plan_fillers(view, wall(159));
    EXPECT_EQ(quiet(plan), FillerPlan{}) << "marked once";
    EXPECT_EQ(plan.look_again, seconds{1});
    EXPECT_THAT(plan_fillers(view, wall(160)).remove, ElementsAre(job));
}

TEST(PlanFillers, ReturningGuestGetsANewFiller) {
    FillerView view = make_filler_view();
    mark(view.jobs[0], 100);
    const FillerPlan plan = plan_fillers(view, wall(110));
    EXPECT_EQ(plan.remove.size(), 1U) << "the old one has an old listing";
    EXPECT_THAT(plan.mark, IsEmpty());
}

TEST(PlanFillers, RewritesAnInvalidIdleMark) {
    FillerView view = make_filler_view();
    view.needed.clear();
    for (const char* text : {"soon", "2199-01-01T00:00:00Z"}) {
        view.jobs[0].meta.annotations[std::string{kIdleSinceAnnotation}] = text;
        const FillerPlan plan = plan_fillers(view, wall(100));
        ASSERT_EQ(plan.mark.size(), 1U) << text;
        EXPECT_EQ(plan.mark[0].since, wall(100)) << text;
    }
}

TEST(PlanFillers, RecreatesAnEndedFiller) {
    for (const bool succeeded : {true, false}) {
        FillerView view = make_filler_view();
        view.jobs[0].end = JobEnd{succeeded, "", "", wall(5)};
        FillerPlan plan = plan_fillers(view, wall(10));
        EXPECT_EQ(plan.remove.size(), 1U);
        EXPECT_THAT(plan.create, IsEmpty()) << "the filler's name is taken";
        view.jobs[0].meta.deleting_since = wall(10);
        EXPECT_EQ(quiet(plan_fillers(view, wall(11))), FillerPlan{})
            << "the filler's pod may still run";
        view.jobs.clear();
        EXPECT_THAT(plan_fillers(view, wall(12)).create, ElementsAre(kFirst));
    }
}

TEST(PlanFillers, ReplacesAFillerOfAnotherSpec) {
    FillerView view = make_filler_view();
    view.needed[kFirst] = "another";
    const FillerPlan plan = plan_fillers(view, wall(10));
    EXPECT_EQ(plan.remove.size(), 1U);
    EXPECT_THAT(plan.create, IsEmpty());
}

TEST(PlanFillers, LeavesJobsOfOtherOwnersAlone) {
    FillerView view = make_filler_view();
    view.needed.clear();
    view.jobs[0].meta.owners[0].uid = "another";
    EXPECT_EQ(plan_fillers(view, wall(1000)), FillerPlan{});
    view.jobs[0].meta.owners.clear();
    EXPECT_EQ(plan_fillers(view, wall(1000)), FillerPlan{});
}

TEST(PlanFillers, RenewsTheLeaseAtHalfTime) {
    FillerView view = make_filler_view();
    const std::int64_t half = kFillerLeaseSeconds / 2;
    EXPECT_THAT(plan_fillers(view, wall(half)).renew, IsEmpty());
    const FillerPlan plan = plan_fillers(view, wall(half + 1));
    ASSERT_EQ(plan.renew.size(), 1U);
    EXPECT_EQ(plan.renew[0].deadline_seconds, half + 1 + kFillerLeaseSeconds);
    view.jobs[0].active_deadline_seconds = plan.renew[0].deadline_seconds;
    EXPECT_THAT(plan_fillers(view, wall(half + 2)).renew, IsEmpty());
    view.needed.clear();
    EXPECT_THAT(plan_fillers(view, wall(half * 3)).renew, IsEmpty());
}

// The lease is the Job's deadline. Users of the Dataset's namespace can edit the Job, so it may be
// any number.
TEST(PlanFillers, DoesNotRenewAnEndlessLeaseWhenTheClockJumpsBack) {
    FillerView view = make_filler_view();
    view.jobs[0].active_deadline_seconds = std::numeric_limits<std::int64_t>::max();
    view.jobs[0].start_time = wall(1000);
    EXPECT_THAT(plan_fillers(view, wall(0)).renew, IsEmpty());
}

TEST(FillerStates, ReportWhatEachFillerWaitsFor) {
    FillerView view = make_filler_view();
    Pod pod = make_filler_pod(view.jobs[0]);
    const auto state = [&](const std::vector<Pod>& pods,
                           const FillerDiagnoses& refusals = {},
                           const FillerDiagnoses& troubles = {}) {
        return find_filler_states(view, pods, refusals, troubles).at(0);
    };
    EXPECT_TRUE(state({pod}).ready);
    pod.ready = false;
    EXPECT_THAT(state({pod}).words, HasSubstr("starts"));
    pod.phase = PodPhase::kPending;
    EXPECT_THAT(state({pod}).words, HasSubstr("is pending"));
    pod.sidecar.waiting_reason = "ImagePullBackOff";
    pod.sidecar.message = "no such image";
    EXPECT_THAT(state({pod}).words, HasSubstr("ImagePullBackOff: no such image"));
    pod.unschedulable_message = "0/3 nodes are available";
    EXPECT_THAT(state({pod}).words, HasSubstr("not scheduled: 0/3 nodes"));
    EXPECT_FALSE(state({pod}).refused);
    EXPECT_THAT(state({}).words, HasSubstr("no pod yet"));
    const FillerState quota = state({}, {}, {{kFirst, "The pods cannot be created: quota"}});
    EXPECT_THAT(quota.words, HasSubstr("quota"));
    EXPECT_TRUE(quota.refused);
    view.jobs[0].suspend = true;
    EXPECT_THAT(state({pod}).words, HasSubstr("suspended"));
    view.jobs.clear();
    const FillerState refused = state({}, {{kFirst, "The API server refuses it: no"}});
    EXPECT_TRUE(refused.refused);
    EXPECT_THAT(refused.words, HasSubstr("refuses it: no"));
}

TEST(FillerStates, IgnoreEndedPods) {
    const FillerView view = make_filler_view();
    Pod pod = make_filler_pod(view.jobs[0]);
    pod.phase = PodPhase::kFailed;
    EXPECT_FALSE(find_filler_states(view, {pod}, {}, {}).at(0).ready);
}

TEST(JudgeFillers, NamesUpToThreeNodes) {
    EXPECT_FALSE(judge_fillers({}));
    std::vector<FillerState> states = {{kFirst, true, false, ""}};
    EXPECT_EQ(judge_fillers(states)->reason, "Serving");
    for (int i = 2; i < 6; ++i) {
        states.push_back({{"nvme", fmt::format("n{}", i)}, false, false, "pod p is pending"});
    }
    const Condition waits = *judge_fillers(states);
    EXPECT_EQ(waits.status, ConditionStatus::kFalse);
    EXPECT_EQ(waits.reason, "Starting");
    EXPECT_EQ(
        waits.message,
        "4 of 5 fillers are not ready: node n2: pod p is pending; node n3: pod p is pending; node "
        "n4: pod p is pending; and more");
    states[2].refused = true;
    EXPECT_EQ(judge_fillers(states)->reason, "Refused");
}

}  // namespace
}  // namespace stoker::control
