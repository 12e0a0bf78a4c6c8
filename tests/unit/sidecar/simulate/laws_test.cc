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
        EXPECT_TRUE(row.holds()) << row.law << " " << row.what << " " << row.parameters
                                 << ": expected " << row.expected << ", measured " << row.measured;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Laws, testing::ValuesIn(laws()), [](const auto& law) {
    return std::string{law.param.name};
});

TEST(LawRow, IsBrokenByWhatIsNoNumber) {
    for (const Bound bound : {Bound::kWithin, Bound::kAtMost, Bound::kAtLeast}) {
        LawRow row{"T0", "", "", 1, std::numeric_limits<double>::quiet_NaN(), 10, bound};
        EXPECT_FALSE(row.holds());
    }
}

TEST(LawRow, ComparesAsItsBoundSays) {
    EXPECT_TRUE((LawRow{"", "", "", 1, 1.05, 0.1, Bound::kWithin}.holds()));
    EXPECT_FALSE((LawRow{"", "", "", 1, 1.2, 0.1, Bound::kWithin}.holds()));
    EXPECT_TRUE((LawRow{"", "", "", 1, 0.5, 0, Bound::kAtMost}.holds()));
    EXPECT_FALSE((LawRow{"", "", "", 1, 0.5, 0, Bound::kAtLeast}.holds()));
}

}  // namespace
}  // namespace stoker::simulate
