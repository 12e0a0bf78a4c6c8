// The operator's simulated world; docs/design/simulation.md.
#include "tests/world/control_world.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace stoker::world {
namespace {

constexpr std::uint64_t kSeeds = 8;

// STOKER_TEST_SEED: begins there instead of at the fixed set.
std::uint64_t first_seed() {
    const char* given = std::getenv("STOKER_TEST_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

TEST(ControlWorld, KeepsItsPromises) {
    for (std::uint64_t seed = first_seed(); seed < first_seed() + kSeeds; ++seed) {
        const ControlOutcome outcome = ControlWorld{seed}.run();
        std::string last_lines;
        for (std::size_t i = outcome.log.size() - std::min<std::size_t>(outcome.log.size(), 100);
             i < outcome.log.size();
             ++i) {
            last_lines += outcome.log[i] + "\n";
        }
        ASSERT_EQ(outcome.accusation, "")
            << last_lines << "replay with: simulate-control " << seed << " --log";
        EXPECT_GE(outcome.passed, std::chrono::seconds{300});
    }
}

TEST(ControlWorld, EqualSeedsGiveEqualRuns) {
    const ControlOutcome one = ControlWorld{first_seed()}.run();
    const ControlOutcome other = ControlWorld{first_seed()}.run();
    EXPECT_EQ(one.log, other.log);
    EXPECT_EQ(one.steps, other.steps);
    EXPECT_NE(one.log, ControlWorld{first_seed() + 1}.run().log);
}

}  // namespace
}  // namespace stoker::world
