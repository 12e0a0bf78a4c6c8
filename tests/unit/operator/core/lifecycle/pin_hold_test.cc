#include "operator/core/lifecycle/pin_hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/plan_training_job.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUid = "uid-imagenet";
const ObjectKey kJob{"team", "resnet"};

TimePoint at(int second) {
    return TimePoint{seconds{second}};
}

// Two ranks on n1 and n2, whose sidecars lead and give an address.
TrainingJobView make_peers() {
    TrainingJobView view = make_running_view();
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        view.reports.push_back(make_report(view, rank, 100));
        view.reports.back().datasets[0].peer_address = "10.0.0.1:7331";
        view.reports.back().datasets[0].peer_generation = 1;
    }
    view.peers[kUid] = {kUid, 7, {{"n1", "10.0.0.1:7331", 1}, {"n2", "10.0.0.2:7331", 1}}};
    return view;
}

std::set<std::string> missing(const TrainingJobView& view) {
    return find_missing_peers(view, 1, moment(101));
}

TEST(FindMissingPeers, NoneWithAMemberOnEachNode) {
    EXPECT_THAT(missing(make_peers()), IsEmpty());
}

TEST(FindMissingPeers, ANodeThatDoesNotLeadYetIsMissing) {
    TrainingJobView view = make_peers();
    view.peers[kUid].members.pop_back();
    EXPECT_THAT(missing(view), ElementsAre(kUid));
    view.reports.pop_back();
    EXPECT_THAT(missing(view), ElementsAre(kUid)) << "its sidecar has not reported yet";
    view.peers.clear();
    EXPECT_THAT(missing(view), ElementsAre(kUid)) << "one sidecar has an address, but no group yet";
}

TEST(FindMissingPeers, APodWithoutANodeIsMissing) {
    TrainingJobView view = make_peers();
    view.pods[1].node_name.clear();
    EXPECT_THAT(missing(view), ElementsAre(kUid));
}

TEST(FindMissingPeers, SidecarsWithoutAnAddressDelayNothing) {
    TrainingJobView view = make_peers();
    view.peers[kUid].members.pop_back();
    view.reports[1].datasets[0].peer_address.clear();
    EXPECT_THAT(missing(view), IsEmpty()) << "this sidecar leads";
    view.reports[1].datasets[0].leader = false;
    EXPECT_THAT(missing(view), IsEmpty()) << "the sidecar follows one that leads";
    view.peers.clear();
    view.reports[0].datasets[0].peer_address.clear();
    view.reports.pop_back();
    EXPECT_THAT(missing(view), IsEmpty()) << "no sidecar has reported an address";
}

TEST(FindMissingPeers, NoneForUnsharedForeignOrSingleNodeDatasets) {
    TrainingJobView view = make_peers();
    view.peers[kUid].members.clear();
    ASSERT_THAT(missing(view), ElementsAre(kUid));
    view.datasets.datasets[0].peers = false;
    EXPECT_THAT(missing(view), IsEmpty());
    view.datasets.datasets[0].peers = true;
    view.datasets.datasets[0].ns = "data";
    EXPECT_THAT(missing(view), IsEmpty());
    view.datasets.datasets[0].ns = "team";
    view.job.spec.trainer.node_count = 1;
    EXPECT_THAT(missing(view), IsEmpty());
}

TEST(PlanTrainingJob, NamesPinnedDatasetsThatLackPeers) {
    TrainingJobView view = make_peers();
    view.peers[kUid].members.pop_back();
    for (SidecarReport& report : view.reports) {
        report.datasets[0].read_revision = "00000000000000aa";
    }
    const TrainingJobPlan plan = plan_training_job(view, moment(101));
    EXPECT_EQ(plan.pins.pins.size(), 1U);
    EXPECT_THAT(plan.missing_peers, ElementsAre(kUid));
}

AttemptPins make_pins(const std::string& prefix = "resnet-a1-") {
    return {"uid-resnet", prefix, {{kUid, domain::RevisionId{0xAA}, {}}}};
}

TEST(PinHold, HoldsAPinForEightSecondsAtMost) {
    PinHold hold;
    AttemptPins pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(0), pins), Duration{seconds{8}});
    EXPECT_THAT(pins.pins, IsEmpty());
    pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(7), pins), Duration{seconds{1}});
    EXPECT_THAT(pins.pins, IsEmpty());
    pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(8), pins), std::nullopt);
    EXPECT_EQ(pins, make_pins());
}

TEST(PinHold, ASentPinIsNotHeldAgain) {
    PinHold hold;
    AttemptPins pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {}, at(0), pins), std::nullopt);
    hold.hold(kJob, {kUid}, at(1), pins);
    EXPECT_EQ(pins, make_pins()) << "a node's leader was lost";
}

TEST(PinHold, PinThatAnEarlierOperatorWroteIsNotHeldAnew) {
    PinHold hold;
    AttemptPins pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(0), pins, make_pins()), std::nullopt);
    EXPECT_EQ(pins, make_pins());
    PinHold other;
    EXPECT_EQ(other.hold(kJob, {kUid}, at(0), pins, make_pins("resnet-a0-")), Duration{seconds{8}})
        << "the written pin was for another attempt";
}

TEST(PinHold, PinThatThisOperatorWroteStaysHeld) {
    PinHold hold;
    AttemptPins pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(0), pins), Duration{seconds{8}});
    pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(1), pins, make_pins()), Duration{seconds{7}});
    EXPECT_THAT(pins.pins, IsEmpty());
}

TEST(PinHold, EachAttemptAndEachJobWaitsAnew) {
    PinHold hold;
    AttemptPins pins = make_pins();
    hold.hold(kJob, {}, at(0), pins);
    AttemptPins next = make_pins("resnet-a2-");
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(60), next), Duration{seconds{8}});
    AttemptPins reborn = make_pins("resnet-a2-");
    reborn.job_uid = "another";
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(90), reborn), Duration{seconds{8}});
    hold.forget(kJob);
    pins = make_pins();
    EXPECT_EQ(hold.hold(kJob, {kUid}, at(91), pins), Duration{seconds{8}});
}

TEST(PinHold, HoldsOnlyTheDatasetsThatLackPeers) {
    PinHold hold;
    AttemptPins pins = make_pins();
    pins.pins.push_back({"other", domain::RevisionId{0xBB}, {}});
    hold.hold(kJob, {kUid}, at(0), pins);
    ASSERT_EQ(pins.pins.size(), 1U);
    EXPECT_EQ(pins.pins[0].dataset_uid, "other");
}

}  // namespace
}  // namespace stoker::control
