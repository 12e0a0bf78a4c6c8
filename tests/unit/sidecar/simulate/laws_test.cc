#include "sidecar/simulate/laws.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

class Laws : public testing::TestWithParam<Law> {};

TEST_P(Laws, Hold) {
    const auto rows = GetParam().check();
    ASSERT_FALSE(rows.empty());
    for (const LawRow& row : rows) {
        EXPECT_TRUE(row.holds()) << GetParam().name << " " << row.what << " " << row.parameters
                                 << ": expected " << row.expected.figure << ", measured "
                                 << row.measured;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Laws, testing::ValuesIn(laws()), [](const auto& law) {
    return std::string{law.param.name};
});

TEST(Expected, FailsForNaN) {
    for (const Expected& expected : {within(1, 10), at_most(1), at_least(1)}) {
        EXPECT_FALSE(expected.holds(std::numeric_limits<double>::quiet_NaN()));
    }
}

TEST(Expected, ComparesByItsKindOfBound) {
    EXPECT_TRUE(within(1, 0.1).holds(1.05));
    EXPECT_FALSE(within(1, 0.1).holds(1.2));
    EXPECT_TRUE(at_most(1).holds(0.5));
    EXPECT_FALSE(at_least(1).holds(0.5));
}

}  // namespace
}  // namespace stoker::simulate
