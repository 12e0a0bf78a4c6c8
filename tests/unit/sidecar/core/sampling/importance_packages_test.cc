#include "sidecar/core/sampling/importance_packages.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(PackageCursor, WalksEverySampleOncePackageByPackage) {
    PackageCursor packages(103, 10, 7, 2);
    const auto any = [](SampleIndex) { return true; };
    std::vector<bool> seen(103, false);
    SampleIndex last = 0;
    std::uint32_t jumps = 0;
    for (std::uint32_t i = 0; i < 103; ++i) {
        const auto sample = packages.next(any, 8);  // the last package lacks seven samples
        ASSERT_TRUE(sample.has_value());
        EXPECT_FALSE(seen[*sample]);
        seen[*sample] = true;
        jumps += *sample != last + 1 ? 1 : 0;
        last = *sample;
    }
    EXPECT_LE(jumps, 11U);
    EXPECT_EQ(packages.next(any, 1000), std::nullopt);
}

TEST(PackageCursor, StopsAfterTheGivenNumberOfSamplesAndContinues) {
    PackageCursor packages(64, 64, 1, 1);
    const auto late = [](SampleIndex sample) { return sample >= 20; };
    EXPECT_EQ(packages.next(late, 16), std::nullopt);
    EXPECT_EQ(packages.next(late, 16), SampleIndex{20});
}

}  // namespace
}  // namespace stoker::sidecar
