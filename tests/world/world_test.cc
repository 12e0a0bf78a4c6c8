// The simulated world; docs/design/simulation.md.
#include "tests/world/world.h"

#include "tests/world/seed_tests.h"

namespace stoker::world {
namespace {

TEST(World, KeepsItsPromises) {
    expect_promises_kept<World>(30, replay_command);
}

TEST(World, EqualSeedsGiveEqualRuns) {
    expect_equal_seeds_to_give_equal_runs<World>();
}

}  // namespace
}  // namespace stoker::world
