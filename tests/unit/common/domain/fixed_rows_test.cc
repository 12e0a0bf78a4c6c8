#include "common/domain/fixed_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

using testing::HasSubstr;

TEST(FixedRows, ARestOfARowIsAnError) {
    EXPECT_EQ(
        count_rows({"a.bin", 25, "e"}, {10}).error().message,
        "'a.bin' has 25 bytes, which are 2 rows of 10 bytes and 5 bytes more: correct "
        "records.bytes, or leave other objects out with records.suffix");
    EXPECT_EQ(count_rows({"a.bin", 0, "e"}, {10}).value(), 0U);
    EXPECT_EQ(count_rows({"a.bin", 30, "e"}, {10}).value(), 3U);
}

TEST(FixedRows, TooManyRowsAreRefusedBeforeTheyAreListed) {
    const auto counted = count_rows({"a.bin", std::uint64_t{1} << 60U, "e"}, {1});
    EXPECT_EQ(counted.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(counted.error().message, HasSubstr("too many for a dataset"));
}

TEST(FixedRows, RowsAreAddedInRunsWithoutReading) {
    constexpr std::uint64_t kCount = 2 * RowIndex::kRunRows + 1;
    RowIndex index{{"a.bin", 10 * kCount, "e"}, 10, kCount};
    Listing samples;
    for (const std::uint64_t before : {std::uint64_t{0}, RowIndex::kRunRows, kCount - 1}) {
        EXPECT_EQ(samples.size(), before);
        EXPECT_EQ(index.next().value(), (ByteRange{10 * before, 0}));
        ASSERT_TRUE(index.take({}, samples).has_value());
    }
    EXPECT_EQ(index.next(), std::nullopt);
    ASSERT_EQ(samples.size(), kCount);
    EXPECT_EQ(samples[kCount - 1].key, "a.bin/000008192");
    EXPECT_EQ(samples[kCount - 1].etag, "range:81920:81930:5:e");
}

}  // namespace
}  // namespace stoker::domain
