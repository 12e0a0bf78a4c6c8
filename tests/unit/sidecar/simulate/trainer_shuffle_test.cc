#include "sidecar/simulate/trainer_shuffle.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

TEST(TrainerShuffle, IsANewPermutationEachEpoch) {
    auto first = shuffled(1000, 1, 0);
    auto second = shuffled(1000, 1, 1);
    EXPECT_NE(first, second);
    EXPECT_NE(first, shuffled(1000, 2, 0));
    EXPECT_EQ(first, shuffled(1000, 1, 0));
    std::vector<SampleIndex> all(1000);
    std::iota(all.begin(), all.end(), SampleIndex{0});
    EXPECT_TRUE(std::ranges::is_permutation(first, all));
    EXPECT_TRUE(std::ranges::is_permutation(second, all));
}

TEST(TrainerShuffle, GoesOnWhereASnapshotWasMade) {
    TrainerShuffle one{100, 7};
    one.begin_epoch(0, 3, 0);
    std::vector<Draw> draws;
    one.draw(0, 40, draws);
    TrainerShuffle other{100, 7};
    ASSERT_TRUE(other.restore(one.snapshot()));
    std::vector<Draw> a;
    std::vector<Draw> b;
    one.draw(0, 100, a);
    other.draw(0, 100, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.size(), 60U);
}

TEST(TrainerShuffle, RefusesWhatIsNoSnapshot) {
    TrainerShuffle sampler{100, 7};
    for (const char* text : {"", "3", "3 ", "3 101", "3 4x", "-1 4"}) {
        EXPECT_FALSE(sampler.restore(text)) << text;
    }
}

}  // namespace
}  // namespace stoker::simulate
