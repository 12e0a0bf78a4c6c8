#include "common/domain/shard_index.h"

#include <limits>

#include <gtest/gtest.h>

#include "common/domain/range_place.h"

namespace stoker::domain {
namespace {

TEST(ShardIndex, NumbersSortAsTheirNames) {
    EXPECT_EQ(number_name(0), "000000000");
    EXPECT_LT(number_name(9), number_name(10));
    EXPECT_LT(number_name(99'999'999), number_name(100'000'000));
}

TEST(ShardIndex, ASampleIsARangeOfItsShard) {
    const ListedObject shard{"f/a.bin", 100, "e"};
    Listing samples;
    ASSERT_TRUE(add_sample(shard, {"x", 40, 60, 7}, samples).has_value());
    ASSERT_TRUE(add_sample(shard, {"y", 100, 0}, samples).has_value());
    EXPECT_EQ(
        samples.objects(),
        (std::vector<ListedObject>{
            {"f/a.bin/x", 60, "crc32c:00000007:range:40:100:7:e"},
            {"f/a.bin/y", 0, "range:99:100:7:e"}}));
}

// 4 GiB of the shortest keys and ETags hold fewer samples than nine digits can name.
TEST(ShardIndex, SamplesThatNoListingHoldsAreRefused) {
    const ListedObject shard{"a", 1, "e"};
    EXPECT_TRUE(check_sample_count(shard, 100'000'000).has_value());
    for (const std::uint64_t count : {std::uint64_t{999'999'999}, ~std::uint64_t{0}}) {
        EXPECT_EQ(check_sample_count(shard, count).error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_TRUE(check_sample_count({"a", 0, "e"}, 0).has_value());
}

}  // namespace
}  // namespace stoker::domain
