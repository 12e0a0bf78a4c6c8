// Scenarios in the simulated world: one event each, and what must follow it. The world's oracle
// checks its promises meanwhile; docs/design/simulation.md.
#include <algorithm>
#include <ranges>

#include <gtest/gtest.h>

#include "tests/world/scenario.h"

namespace stoker::world {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kSamples = 200;
constexpr std::uint64_t kMost = kSamples * 4 / 5;        // the rest may wait in the window
constexpr Size kPair{.nodes = 1, .jobs = 1, .pods = 2};  // two ranks of a job on a node
constexpr Size kTwoJobs{.nodes = 1, .jobs = 2, .pods = 2};

TEST_F(Scenario, TwoJobsFetchEachSampleOnce) {
    World& world = make(kTwoJobs);
    run_for(minutes{2});
    EXPECT_GT(world.epoch(0) + world.epoch(1), 2U);
    EXPECT_EQ(world.count("fetches"), kSamples);
    EXPECT_EQ(world.count("proofs of access"), 1U) << "the follower's job has shown its key once";
}

TEST_F(Scenario, PodsOfTheLeadersJobNeedNotProveAccessToTheOrigin) {
    World& world = make(kPair);
    run_for(minutes{1});
    EXPECT_EQ(world.count("proofs of access"), 0U);
}

TEST_F(Scenario, KilledLeaderLosesNoSampleAndTheFollowerLeads) {
    World& world = make(kPair);
    run_for(minutes{1});
    const std::size_t leader = world.leader(0).value();
    world.strike(Fault::kKill, leader);
    run_for(seconds{5});
    EXPECT_EQ(world.leader(0), 1 - leader);
    run_for(minutes{1});
    EXPECT_EQ(world.count("fetches"), kSamples);
}

TEST_F(Scenario, RestartedSidecarKeepsItsResidents) {
    World& world = make({.nodes = 1, .jobs = 1, .pods = 1});
    run_for(minutes{1});
    world.strike(Fault::kShutDown, 0);
    run_for(minutes{1});
    EXPECT_EQ(residents(), kSamples);
    EXPECT_EQ(world.count("fetches"), kSamples);
}

TEST_F(Scenario, StoppedLeaderLeadsAgainAfterwards) {
    World& world = make(kPair, {.grant = {}});
    run_for(minutes{1});
    const auto leader = world.leader(0);
    const auto epoch = world.epoch(1 - *leader);
    world.strike(Fault::kStop, *leader);
    run_for(minutes{1});
    EXPECT_EQ(world.leader(0), leader) << "the lock is its own while it is stopped";
    EXPECT_GT(world.epoch(1 - *leader), epoch);
}

TEST_F(Scenario, PodsOfALostNodeGoOnElsewhere) {
    World& world = make({.nodes = 2, .jobs = 1, .pods = 2});
    run_for(minutes{1});
    const auto epoch = world.epoch(0);
    world.strike(Fault::kNodeLost, 0);
    run_for(minutes{2});
    EXPECT_GT(world.epoch(0), epoch);
    EXPECT_TRUE(world.leader(1).has_value());
}

TEST_F(Scenario, PowerCutLosesUnsyncedSamplesOnly) {
    World& world = make(kPair);
    run_for(minutes{1});
    world.strike(Fault::kPowerCut, 0);
    run_for(minutes{1});
    EXPECT_EQ(residents(), kSamples);
    EXPECT_LT(world.count("fetches"), 2 * kSamples);
}

TEST_F(Scenario, NothingIsKeptBeforeTheFirstGrant) {
    World& world = make(kPair, {.window = kib(128), .is_operated = true});
    run_for(minutes{1});
    EXPECT_EQ(residents(), 0U);
    world.grant(0, gib(1));
    run_for(minutes{1});
    const std::uint64_t kept = residents();
    EXPECT_GT(kept, kMost);
    world.strike(Fault::kShutDown, world.leader(0).value());
    run_for(minutes{1});
    EXPECT_GE(residents(), kept) << "an earlier grant's samples are served";
}

// The operator sends a grant to the leader only, and again to the next one.
TEST_F(Scenario, FollowerThatLeadsDoesNotUseAnOlderGrant) {
    World& world = make(kPair, {.is_operated = true});
    run_for(seconds{10});
    world.grant(0, gib(1));
    run_for(seconds{30});
    EXPECT_EQ(world.status(0).granted_bytes, gib(1));
    world.strike(Fault::kKill, world.leader(0).value());
    run_for(seconds{5});
    EXPECT_TRUE(world.status(0).granted_bytes.is_unlimited()) << "no grant yet";
    EXPECT_GT(residents(), 0U);
    world.grant(0, mib(1));
    run_for(seconds{5});
    EXPECT_EQ(world.status(0).granted_bytes, mib(1));
}

TEST_F(Scenario, OperatorGoneForAMinuteKeepsResidentsAndAddsNone) {
    World& world = make(kPair, {.grant = {}, .window = kib(128)});
    run_for(seconds{30});
    world.grant(0, gib(1), seconds{2});
    run_for(seconds{10});
    const std::uint64_t kept = residents();
    EXPECT_GT(kept, 0U);
    EXPECT_LT(kept, kSamples);
    run_for(minutes{1});
    EXPECT_EQ(residents(), kept);
    world.grant(0, gib(1), minutes{30});
    run_for(minutes{1});
    EXPECT_GT(residents(), kMost);
}

TEST_F(Scenario, SmallerGrantEvictsAtOnce) {
    World& world = make(kPair);
    run_for(minutes{1});
    const Bytes half{world.status(0).bytes.resident.count() / 2};
    world.grant(0, half);
    run_for(seconds{3});
    EXPECT_LE(world.status(0).bytes.resident, half);
    EXPECT_GT(residents(), kSamples / 3);
}

TEST_F(Scenario, LruFillsTheGrantAndEvicts) {
    World& world = make(kPair, {.grant = kib(600), .eviction = sidecar::EvictionKind::kLru});
    run_for(minutes{2});
    EXPECT_GT(world.status(0).bytes.resident, kib(500));
    EXPECT_GT(world.status(0).counters.evicted_resident_samples, 100U);
}

TEST_F(Scenario, LeaderWithARevokedKeyLetsAnotherLead) {
    World& world = make(kTwoJobs, {.grant = {}, .window = kib(128)});  // it fetches all the time
    run_for(minutes{1});
    const std::size_t leader = world.leader(0).value();
    world.refuse_key_for(leader, minutes{1});
    run_for(seconds{15});
    EXPECT_EQ(world.leader(0), 1 - leader);
}

// The two sidecars lead in turn: each is refused and gives up leadership; the timeline tells these
// periods apart.
TEST_F(Scenario, PairWithRevokedKeysLeadsAgainOnceAKeyIsAccepted) {
    World& world = make(kTwoJobs, {.grant = {}, .window = kib(128)});  // it fetches all the time
    run_for(minutes{1});
    world.refuse_key_for(0, minutes{1});
    world.refuse_key_for(1, minutes{1});
    run_for(minutes{2});
    EXPECT_TRUE(world.leader(0).has_value());
    const std::uint64_t epoch = world.epoch(0);
    run_for(minutes{1});
    EXPECT_GT(world.epoch(0), epoch);
    const Outcome outcome = world.run();
    const auto leads = [](const Moment& moment) { return moment.lead; };
    EXPECT_GE(std::ranges::max(outcome.timeline.moments | std::views::transform(leads)), 3U);
}

TEST_F(Scenario, LeaderThatMayNotListLetsAnotherLead) {
    World& world = make(kTwoJobs);
    world.refuse_key_for(0, minutes{2});
    run_for(minutes{1});
    EXPECT_EQ(world.leader(0), 1U);
}

// Seed 80010: the leader would have tried to list again 16 s later.
TEST_F(Scenario, LeaderThatMayNotListLetsALateFollowerLead) {
    World& world = make(kTwoJobs, {.first_key_is_refused = true});
    for (int i = 0; i < 5; ++i) {
        run_for(seconds{5});
        world.strike(Fault::kKill, 1);
        while (world.sidecar(1) == nullptr || world.sidecar(1)->is_dead()) {
            run_for(seconds{1});
        }
        run_for(seconds{8});
        EXPECT_EQ(world.leader(0), 1U);
    }
}

TEST_F(Scenario, FollowersWithGoodKeysAreServedAfterOneOfThemHasBecomeLeader) {
    World& world = make({.nodes = 1, .jobs = 3, .pods = 3}, {.first_key_is_refused = true});
    run_for(minutes{2});
    EXPECT_NE(world.leader(0), 0U);
    EXPECT_GT(world.epoch(1), 0U);
    EXPECT_GT(world.epoch(2), 0U);
}

TEST_F(Scenario, JobsReadAfterAnOutageOfTheOrigin) {
    World& world = make(kPair, {.grant = {}});
    run_for(minutes{1});
    world.strike(Fault::kOriginDown, 0);
    run_for(minutes{1});
    const auto epoch = world.epoch(0);
    run_for(minutes{1});
    EXPECT_GT(world.epoch(0), epoch);
}

TEST_F(Scenario, GuestReadsWhatTheDatasetsNamespaceFetched) {
    World& world = make(kTwoJobs, {.last_job_is_guest = true});
    run_for(minutes{2});
    EXPECT_EQ(world.leader(0), 0U);
    EXPECT_GT(world.epoch(1), 1U);
    EXPECT_EQ(world.count("fetches"), kSamples);
    world.strike(Fault::kShutDown, 0);
    run_for(minutes{1});
    EXPECT_EQ(world.leader(0), 0U) << "the guest took no lock";
}

TEST_F(Scenario, GuestReadsTheOriginWhileTheKeyOfTheDatasetsNamespaceIsRefused) {
    World& world = make(kTwoJobs, {.last_job_is_guest = true, .first_key_is_refused = true});
    run_for(minutes{2});
    EXPECT_GT(world.epoch(1), 0U);
    EXPECT_GT(world.count("samples from the origin"), kSamples);
    EXPECT_EQ(world.count("fetches"), 0U);
}

// A killed sidecar is away for 0.1 to 30 s; without a leader for 3 s, the guest's session ends.
TEST_F(Scenario, GuestDrawsItselfWhileTheDatasetsNamespaceHasNoSidecar) {
    World& world = make(kTwoJobs, {.contract = "windowed", .last_job_is_guest = true});
    for (int i = 0; i < 12; ++i) {
        run_for(seconds{8});
        world.strike(Fault::kKill, 0);
    }
    run_for(minutes{1});
    EXPECT_GT(world.epoch(1), 1U);
    EXPECT_GT(world.count("samples from the origin"), 0U);
}

TEST_F(Scenario, GuestWithoutAKeyWaitsForASidecarOfTheDatasetsNamespace) {
    World& world = make(kTwoJobs, {.last_job_is_guest = true, .guest_has_key = false});
    run_for(minutes{1});
    world.strike(Fault::kShutDown, 0);
    run_for(minutes{1});
    const auto epoch = world.epoch(1);
    run_for(minutes{1});
    EXPECT_GT(world.epoch(1), epoch);
    EXPECT_EQ(world.sidecar(1)->role(), "following");
}

}  // namespace
}  // namespace stoker::world
