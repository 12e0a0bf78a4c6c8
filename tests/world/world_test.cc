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

// This seed aims faults at situations that random times hardly meet.
TEST(World, AimedFaultsMeetRareSituations) {
    const Outcome outcome = World{3027}.run();
    EXPECT_EQ(outcome.accusation, "");
    const auto met = [&](Situation situation) {
        std::uint64_t sum = 0;
        for (const auto& row : outcome.table) {
            sum += row.at(static_cast<std::size_t>(situation));
        }
        return sum;
    };
    EXPECT_GT(met(Situation::kSeeking), 0U);
    EXPECT_GT(met(Situation::kRetiring), 0U);
}

}  // namespace
}  // namespace stoker::world
