#include "common/base/piece_list.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker {
namespace {

TEST(PieceList, IsAListWhateverIsAddedAndTaken) {
    Prng luck(test::seed());
    PieceList<std::uint32_t, 4> list;
    std::vector<std::uint32_t> plain;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        // Phases of growth and of decline.
        if (plain.empty() || luck.below(10) < (i / 500 % 2 == 0 ? 7U : 3U)) {
            list.push_back(i);
            plain.push_back(i);
        } else {
            list.pop_back();
            plain.pop_back();
        }
        ASSERT_EQ(list.size(), plain.size());
        ASSERT_EQ(list.empty(), plain.empty());
        if (!plain.empty()) {
            const auto at = luck.below(plain.size());
            ASSERT_EQ(list[at], plain[at]);
            ASSERT_EQ(list.back(), plain.back());
            list[at] = plain[at] = i;
        }
    }
}

TEST(PieceList, GivesMemoryBackAsItShrinks) {
    PieceList<std::uint32_t, 1024> list;
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        list.push_back(i);
    }
    EXPECT_LT(list.memory_bytes(), 100'000U * 4 + 3 * 4096);
    while (list.size() > 10) {
        list.pop_back();
    }
    EXPECT_LT(list.memory_bytes(), 3U * 4096);
    EXPECT_EQ(list.back(), 9U);
    list.clear();
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.memory_bytes(), 0U);
}

// At the border between two pieces nothing is taken and given back at every step.
TEST(PieceList, KeepsThePieceBehindItsEnd) {
    PieceList<std::uint32_t, 4> list;
    for (std::uint32_t i = 0; i < 5; ++i) {
        list.push_back(i);
    }
    const auto bytes = list.memory_bytes();
    list.pop_back();
    EXPECT_EQ(list.memory_bytes(), bytes);
    list.push_back(7);
    EXPECT_EQ(list.memory_bytes(), bytes);
}

}  // namespace
}  // namespace stoker
