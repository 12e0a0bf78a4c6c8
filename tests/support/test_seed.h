#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace stoker::test {

// The seed of a random test: STOKER_TEST_SEED, or a random one. Printed, so that a failure can be
// reproduced.
inline std::uint64_t seed() {
    const char* given = std::getenv("STOKER_TEST_SEED");
    const std::uint64_t value =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("STOKER_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
}

}  // namespace stoker::test
