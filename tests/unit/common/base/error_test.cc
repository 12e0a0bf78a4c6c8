#include "common/base/error.h"

#include <set>

#include <gtest/gtest.h>

#include "common/base/result.h"

namespace stoker {
namespace {

Result<int> half(int number) {
    if (number % 2 != 0) {
        return fail(ErrorCode::kInvalidArgument, "odd");
    }
    return number / 2;
}

Result<int> quarter(int number) {
    STOKER_TRY(const int once, half(number));
    STOKER_TRY(const int twice, half(once));
    return twice;
}

Status even(int number) {
    STOKER_TRY_VOID(half(number));
    return {};
}

TEST(Error, EveryCodeHasAUniqueName) {
    std::set<std::string_view> names;
    for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
        names.insert(to_string(static_cast<ErrorCode>(code)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
}

TEST(Error, OnlyTransientErrorsAreRetryable) {
    EXPECT_TRUE(is_retryable(ErrorCode::kUnavailable));
    EXPECT_TRUE(is_retryable(ErrorCode::kDeadlineExceeded));
    EXPECT_FALSE(is_retryable(ErrorCode::kConflict));
    EXPECT_FALSE(is_retryable(ErrorCode::kNotFound));
}

TEST(Error, PrefixAddsTheContext) {
    const Error error{ErrorCode::kNotFound, "no such bucket"};
    EXPECT_EQ(
        error.prefixed("listing s3://b/p"),
        (Error{ErrorCode::kNotFound, "listing s3://b/p: no such bucket"}));
}

TEST(Result, TryReturnsTheFirstError) {
    EXPECT_EQ(quarter(8).value(), 2);
    EXPECT_EQ(quarter(6).error().message, "odd");
    EXPECT_TRUE(even(2).has_value());
    EXPECT_FALSE(even(3).has_value());
}

}  // namespace
}  // namespace stoker
