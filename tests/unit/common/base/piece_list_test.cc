#include "common/base/piece_list.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker {
namespace {

TEST(PieceList, MatchesAVectorUnderRandomPushAndPop) {
    Prng luck(test::seed());
    PieceList<std::uint32_t, 4> list;
    std::vector<std::uint32_t> plain;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        // Alternates phases of growth and shrinkage.
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

TEST(PieceList, FreesMemoryAsItShrinks) {
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

// At the boundary between two pieces, push and pop do not reallocate each time.
TEST(PieceList, KeepsOneSparePiece) {
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
