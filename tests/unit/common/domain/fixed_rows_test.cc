#include "common/domain/fixed_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

using testing::HasSubstr;

TEST(FixedRows, ARestOfARowIsAnError) {
    Listing samples;
    EXPECT_EQ(
        add_rows({"a.bin", 25, "e"}, {10}, samples).error().message,
        "'a.bin' has 25 bytes, which are 2 rows of 10 bytes and 5 bytes more: correct "
        "records.bytes, or leave other objects out with records.suffix");
    EXPECT_TRUE(add_rows({"a.bin", 0, "e"}, {10}, samples).has_value());
    EXPECT_TRUE(samples.empty());
}

TEST(FixedRows, TooManyRowsAreRefusedBeforeTheyAreListed) {
    Listing samples;
    const auto added = add_rows({"a.bin", std::uint64_t{1} << 60U, "e"}, {1}, samples);
    EXPECT_EQ(added.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(added.error().message, HasSubstr("too many for a dataset"));
    EXPECT_TRUE(samples.empty());
}

}  // namespace
}  // namespace stoker::domain
