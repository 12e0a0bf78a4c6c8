// The operator's simulated world; docs/design/simulation.md.
#include "tests/world/control_world.h"

#include "tests/world/seed_tests.h"

namespace stoker::world {
namespace {

TEST(ControlWorld, KeepsItsPromises) {
    expect_promises_kept<ControlWorld>(8, replay_control_command);
}

TEST(ControlWorld, EqualSeedsGiveEqualRuns) {
    expect_equal_seeds_to_give_equal_runs<ControlWorld>();
}

}  // namespace
}  // namespace stoker::world
