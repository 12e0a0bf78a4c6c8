// Simulates the planner and an operator's record of its grants under faults: sidecars that are
// slow, cut off, disobedient or restarted without memory; late and lost messages; overlapping
// leaders; changing jobs; wrong profiles; vanishing nodes. Safety must hold at every tick, and the
// system must settle once the faults stop. A tick is a second.

#include <string>

#include <gtest/gtest.h>

#include "tests/sim/allocation_world.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr int kSeeds = 2000;
constexpr int kFaultTicks = 40;
constexpr int kCalmTicks = 60;

void run(bool shared) {
    const std::uint64_t seed = test_seed();
    int settled_under_faults = 0;
    for (int round = 0; round < kSeeds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + static_cast<std::uint64_t>(round), shared};
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
    // Some states must settle under faults, or expect_minimums_where_settled() checks nothing.
    EXPECT_GT(settled_under_faults, kSeeds);
}

TEST(AllocationSim, IsSafeAtEveryTickAndSettles) {
    run(false);
}

TEST(AllocationSim, IsSafeAndSettlesWithSharedDatasets) {
    run(true);
}

}  // namespace
}  // namespace stoker::control
