#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/world/seed_runs.h"

// The tests of every simulated world. AnyWorld is made from a seed and has run().
namespace stoker::world {

// The first seed of a test: STOKER_TEST_SEED, or 1 if it is not set.
inline std::uint64_t first_seed() {
    const char* given = std::getenv("STOKER_TEST_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

// `replay`: the command that runs a seed again.
template <class AnyWorld>
void expect_promises_kept(std::uint64_t seeds, std::string (*replay)(std::uint64_t seed)) {
    for (std::uint64_t seed = first_seed(); seed < first_seed() + seeds; ++seed) {
        const auto outcome = AnyWorld{seed}.run();
        ASSERT_EQ(outcome.accusation, "")
            << last_lines(outcome.log, 100) << "replay with: " << replay(seed);
        EXPECT_GE(outcome.passed, std::chrono::seconds{300});
    }
}

template <class AnyWorld>
void expect_equal_seeds_to_give_equal_runs() {
    const auto one = AnyWorld{first_seed()}.run();
    const auto other = AnyWorld{first_seed()}.run();
    EXPECT_EQ(one.log, other.log);
    EXPECT_EQ(one.steps, other.steps);
    EXPECT_NE(one.log, AnyWorld{first_seed() + 1}.run().log);
}

}  // namespace stoker::world
