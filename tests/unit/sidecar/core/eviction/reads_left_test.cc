#include "sidecar/core/eviction/reads_left.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(ReadsLeft, CountsCopiesDownToZero) {
    ReadsLeft left{4};
    left.add(std::vector<SampleIndex>{1, 3, 1});
    left.add(std::vector<SampleIndex>{1});
    EXPECT_EQ(left.of(0), 0U);
    EXPECT_EQ(left.of(1), 3U);
    EXPECT_EQ(left.of(3), 1U);
    left.on_read(3);
    left.on_read(3);
    EXPECT_EQ(left.of(3), 0U) << "a read that was not counted";
    left.clear();
    EXPECT_EQ(left.of(1), 0U);
}

TEST(ReadsLeft, StopsAtTheLargestCount) {
    ReadsLeft left{1};
    left.add(std::vector<SampleIndex>(300, 0));
    EXPECT_EQ(left.of(0), 255U);
}

}  // namespace
}  // namespace stoker::sidecar
