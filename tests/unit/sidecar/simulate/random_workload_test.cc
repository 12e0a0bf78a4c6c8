#include "sidecar/simulate/random_workload.h"

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::simulate {
namespace {

TEST(RandomWorkload, DrawsWithinBoundsAndReportsItsParameters) {
    RandomWorkload random{test::seed()};
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t count = random.count("n", 2, 5);
        EXPECT_TRUE(count >= 2 && count <= 5) << count;
        const double number = random.number("x", .1, .2);
        EXPECT_TRUE(number >= .1 && number <= .2) << number;
    }
    const LawRow row = random.row("what", about(1), 1);
    EXPECT_NE(row.parameters.find(" n=2"), std::string::npos);
    EXPECT_NE(row.parameters.find(" x=0.1"), std::string::npos);
}

// From 65,536 samples on, samplers sort the losses in slices: random datasets cover both cases.
TEST(RandomWorkload, HalfOfTheDatasetsAreLarge) {
    RandomWorkload random{test::seed()};
    int large = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t samples = random.samples();
        EXPECT_TRUE(samples >= 1000 && samples <= 300'000) << samples;
        large += samples >= 65'536 ? 1 : 0;
    }
    EXPECT_NEAR(large, 500, 80);
}

TEST(RandomWorkload, GetsEnoughEpochsForItsTolerance) {
    RandomWorkload random{test::seed()};
    Scenario scenario = random.one_job(1000, 2000);
    random.draw_epochs(scenario, .5);
    const double reads =
        static_cast<double>(scenario.dataset.samples * (scenario.epochs - scenario.discard));
    EXPECT_GE(reads, 160'000);
}

}  // namespace
}  // namespace stoker::simulate
