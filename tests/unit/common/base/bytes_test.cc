#include "common/base/bytes.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Bytes, AdditionSaturatesAtUnlimited) {
    EXPECT_EQ(Bytes::unlimited() + Bytes{1}, Bytes::unlimited());
    EXPECT_EQ(Bytes{UINT64_MAX - 1} + Bytes{5}, Bytes::unlimited());
    EXPECT_EQ(Bytes{2} + Bytes{3}, Bytes{5});
}

TEST(Bytes, SubtractionStopsAtZero) {
    EXPECT_EQ(Bytes{2} - Bytes{3}, Bytes::zero());
    EXPECT_EQ(Bytes{3} - Bytes{2}, Bytes{1});
}

TEST(Bytes, UnlimitedMinusAnythingIsUnlimited) {
    EXPECT_EQ(Bytes::unlimited() - gib(1), Bytes::unlimited());
}

TEST(Bytes, MultiplicationSaturates) {
    EXPECT_EQ(gib(8) * (1ULL << 40U), Bytes::unlimited());
    EXPECT_EQ(Bytes::unlimited() * 0, Bytes::zero());
    EXPECT_EQ(kib(2) * 3, Bytes{6144});
}

TEST(Bytes, PrintsHumanReadableUnits) {
    EXPECT_EQ(to_string(Bytes{17}), "17B");
    EXPECT_EQ(to_string(gib(310)), "310Gi");
    EXPECT_EQ(to_string(kib(1536)), "1.5Mi");
    EXPECT_EQ(to_string(Bytes::unlimited()), "unlimited");
}

}  // namespace
}  // namespace stoker
