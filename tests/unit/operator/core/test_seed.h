#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::control {

// Seed of a random test: STOKER_TEST_SEED, or a new one. Prints the seed, so that a failure can be
// reproduced.
inline std::uint64_t test_seed() {
    const char* given = std::getenv("STOKER_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    fmt::print("STOKER_TEST_SEED={}\n", seed);
    ::testing::Test::RecordProperty("seed", fmt::format("{}", seed));
    return seed;
}

}  // namespace stoker::control
