#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace stoker::test {

// The seed of a random test: STOKER_TEST_SEED when it is set, else a new one. Print it with
// SCOPED_TRACE(seed_text(seed)).
inline std::uint64_t make_seed() {
    if (const char* given = std::getenv("STOKER_TEST_SEED")) {
        return std::stoull(given);
    }
    return std::random_device{}();
}

inline std::string seed_text(std::uint64_t seed) {
    return "STOKER_TEST_SEED=" + std::to_string(seed);
}

}  // namespace stoker::test
