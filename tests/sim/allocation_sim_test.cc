// The planner and the books that an operator keeps of its grants, among sidecars that are slow, cut
// off or stubborn, with messages late or lost, leaders that change and overlap for a while, jobs
// that come and go, profiles that are wrong, and nodes that vanish. Safety holds at every tick;
// when the faults stop, everything comes to rest. A tick is a second.

#include <string>

#include <gtest/gtest.h>

#include "tests/sim/allocation_world.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kSeeds = 2000;
constexpr int kFaultTicks = 40;
constexpr int kCalmTicks = 60;
constexpr int kSharedSeeds = 250;

TEST(AllocationSim, IsSafeAtEveryTickAndComesToRest) {
    const std::uint64_t seed = test_seed();
    int settled_under_faults = 0;
    for (int round = 0; round < kSeeds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + static_cast<std::uint64_t>(round), false, true};
        for (int i = 0; i < kFaultTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(true);
            world.expect_safe();
            settled_under_faults += world.expect_minimums_where_settled() ? 1 : 0;
        }
        for (int i = 0; i < kCalmTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(false);
            world.expect_safe();
            world.expect_minimums_where_settled();
        }
        world.expect_rest();
    }
    // Or the faults leave nothing to look at.
    EXPECT_GT(settled_under_faults, kSeeds);
}

// With one leader, and streams that do not break, nobody grows too far at any tick.
TEST(AllocationSim, IsSafeAtEveryTickWhereNamespacesReadEachOthersDatasets) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < kSharedSeeds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + static_cast<std::uint64_t>(round), true, false};
        for (int i = 0; i < kFaultTicks + kCalmTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(i < kFaultTicks);
            world.expect_safe();
        }
    }
}

// Here a promise from before a namespace left, whose stream broke, may still arrive, and is too
// much for as long as it takes to give it back (docs/adr/0006): no node holds too much meanwhile,
// and it is given back. A search, not a law (docs/design/allocation.md says how often plans of
// shared datasets go on): the same worlds always.
TEST(AllocationSim, GivesBackWhatWasPromisedTooMuchWhereTheyShareAndStreamsBreak) {
    constexpr std::uint64_t kSeed = 20261121;
    for (int round = 0; round < kSharedSeeds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{kSeed + static_cast<std::uint64_t>(round), true, true};
        for (int i = 0; i < kFaultTicks + kCalmTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(i < kFaultTicks);
            world.expect_safe();
        }
        world.expect_rest();
    }
}

}  // namespace
}  // namespace stoker::control
