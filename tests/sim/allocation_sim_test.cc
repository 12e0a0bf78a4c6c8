// The planner and the books that an operator keeps of its grants, among sidecars that are slow, cut
// off or stubborn, or that begin anew and forget, with messages late or lost, leaders that change
// and overlap for a while, jobs that come and go, profiles that are wrong, and nodes that vanish.
// Safety holds at every tick; when the faults stop, everything comes to rest. A tick is a second.

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
    // Or the faults leave nothing to look at.
    EXPECT_GT(settled_under_faults, kSeeds);
}

TEST(AllocationSim, IsSafeAtEveryTickAndComesToRest) {
    run(false);
}

TEST(AllocationSim, IsSafeAtEveryTickAndComesToRestWhereNamespacesReadEachOthersDatasets) {
    run(true);
}

}  // namespace
}  // namespace stoker::control
