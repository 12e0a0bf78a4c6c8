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

struct Worlds {
    std::uint64_t seed = 0;
    int count = kSeeds;
    bool shared = false;
    bool rest = true;  // is looked at, and the minimums
};

void run(const Worlds& worlds) {
    int settled_under_faults = 0;
    for (int round = 0; round < worlds.count && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{worlds.seed + static_cast<std::uint64_t>(round), worlds.shared, worlds.rest};
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
        if (worlds.shared) {
            world.expect_that_nobody_pays_who_has_left();
        }
        if (worlds.rest) {
            world.expect_rest();
        }
    }
    // Or the faults leave nothing to look at.
    EXPECT_GT(settled_under_faults, worlds.count);
}

TEST(AllocationSim, IsSafeAtEveryTickAndComesToRest) {
    run({.seed = test_seed()});
}

TEST(AllocationSim, IsSafeAtEveryTickWhereNamespacesReadEachOthersDatasets) {
    run({.seed = test_seed(), .shared = true, .rest = false});
}

// A search, not a law: bytes are charged in whole parts, and where quotas bind to the last byte
// several roundings may come together, or two plans take turns (docs/design/allocation.md). The
// same worlds always.
TEST(AllocationSim, ComesToRestWithTheMinimumsWhereNamespacesReadEachOthersDatasets) {
    constexpr std::uint64_t kSeed = 20261121;
    run({.seed = kSeed, .count = 2000, .shared = true});
}

}  // namespace
}  // namespace stoker::control
