#include "common/base/flat_map.h"

#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker {
namespace {

std::map<std::uint32_t, std::uint32_t> contents(const FlatMap<std::uint32_t>& map) {
    std::map<std::uint32_t, std::uint32_t> found;
    map.for_each([&found](std::uint32_t key, std::uint32_t value) {
        EXPECT_TRUE(found.emplace(key, value).second) << key << " twice";
    });
    return found;
}

// Uses few keys, so that entries collide and holes are filled often.
TEST(FlatMap, MatchesAMapUnderRandomInsertAndErase) {
    Prng luck{test::seed()};
    for (const std::uint32_t keys : {20U, 300U, 100'000U}) {
        FlatMap<std::uint32_t> flat;
        std::map<std::uint32_t, std::uint32_t> plain;
        for (std::uint32_t i = 0; i < 20'000; ++i) {
            const auto key = static_cast<std::uint32_t>(luck.below(keys));
            if (luck.below(2) == 0) {
                flat[key] = plain[key] = i;
            } else if (plain.erase(key) > 0) {
                flat.erase(key);
            }
            const std::uint32_t* const value = flat.find(key);
            ASSERT_EQ(value != nullptr, plain.contains(key));
            ASSERT_TRUE(value == nullptr || *value == plain.at(key));
            ASSERT_EQ(flat.size(), plain.size());
        }
        EXPECT_EQ(contents(flat), plain);
    }
}

TEST(FlatMap, NewEntriesAreZero) {
    FlatMap<std::uint32_t> map;
    EXPECT_EQ(++map[7], 1U);
    map.erase(7);
    EXPECT_EQ(++map[7], 1U);
}

TEST(FlatMap, IsEmptyOnceCleared) {
    FlatMap<std::uint32_t> map;
    map[3] = 1;
    map.clear();
    EXPECT_EQ(map.find(3), nullptr);
    EXPECT_EQ(map.size(), 0U);
    map[3] = 2;
    EXPECT_EQ(*map.find(3), 2U);
}

}  // namespace
}  // namespace stoker
