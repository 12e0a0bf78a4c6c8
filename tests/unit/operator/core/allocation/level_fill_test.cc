#include "operator/core/allocation/level_fill.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

std::vector<Bytes> bytes(const std::vector<std::uint64_t>& counts) {
    std::vector<Bytes> result;
    for (const std::uint64_t count : counts) {
        result.emplace_back(count);
    }
    return result;
}

TEST(LevelFill, GivesEqualPartsUpToEachNeed) {
    EXPECT_EQ(level_fill(bytes({10, 2, 10}), Bytes{12}), bytes({5, 2, 5}));
    EXPECT_EQ(level_fill(bytes({10, 2, 10}), Bytes{100}), bytes({10, 2, 10}));
    EXPECT_EQ(level_fill(bytes({10, 2, 10}), Bytes{0}), bytes({0, 0, 0}));
    EXPECT_EQ(level_fill({}, Bytes{7}), bytes({}));
}

TEST(LevelFill, DividesTheBudgetToTheByte) {
    const std::vector<Bytes> amounts = level_fill(bytes({10, 10, 10}), Bytes{11});
    EXPECT_EQ(amounts[0] + amounts[1] + amounts[2], Bytes{11});
}

TEST(LevelFill, DividesAnUnlimitedBudget) {
    const std::vector<Bytes> amounts =
        level_fill({Bytes::unlimited(), Bytes{5}}, Bytes::unlimited());
    EXPECT_EQ(amounts[1], Bytes{5});
    EXPECT_GT(amounts[0], gib(1));
}

// Definition of max-min fairness: an amount can grow only if another one that is not larger
// shrinks.
TEST(LevelFill, IsMaxMinFairForRandomNeeds) {
    Prng prng{test_seed()};
    for (int round = 0; round < 2000; ++round) {
        std::vector<Bytes> needs(1 + prng.below(6));
        Bytes total{};
        for (Bytes& need : needs) {
            need = Bytes{prng.below(50)};
            total += need;
        }
        const Bytes budget{prng.below(200)};
        const std::vector<Bytes> amounts = level_fill(needs, budget);
        Bytes given{};
        for (std::size_t i = 0; i < needs.size(); ++i) {
            ASSERT_LE(amounts[i], needs[i]);
            given += amounts[i];
            if (amounts[i] < needs[i]) {
                const Bytes most = *std::max_element(amounts.begin(), amounts.end());
                ASSERT_LE(most - amounts[i], Bytes{1});
            }
        }
        ASSERT_EQ(given, std::min(total, budget));
    }
}

}  // namespace
}  // namespace stoker::control
