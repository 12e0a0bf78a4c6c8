#include "sidecar/simulate/baselines/swap_order.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::simulate {
namespace {

// Reads a random unread sample next.
class AnyOrder final : public SwapOrder {
public:
    AnyOrder(std::uint64_t samples, std::uint64_t seed)
        : SwapOrder(samples, seed),
          samples_(samples),
          prng_(seed) {}

    void draw(std::uint32_t, std::size_t count, std::vector<Draw>& draws) override {
        for (; count > 0 && !is_at_end(); --count) {
            const auto wished = static_cast<SampleIndex>(prng_.below(samples_));
            read(is_unread(wished) ? wished : next(), draws);
        }
    }

private:
    std::uint64_t samples_;
    Prng prng_;
};

TEST(Shuffled, IsANewPermutationEachEpoch) {
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

TEST(SwapOrder, ReadsEachSampleOnceInAnyOrder) {
    AnyOrder order{500, test::seed()};
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        order.begin_epoch(0, epoch, 0);
        std::vector<Draw> draws;
        order.draw(0, 1000, draws);
        ASSERT_EQ(draws.size(), 500U);
        std::vector<SampleIndex> served;
        for (const Draw& draw : draws) {
            served.push_back(draw.served);
        }
        std::ranges::sort(served);
        EXPECT_TRUE(std::ranges::adjacent_find(served) == served.end());
        EXPECT_EQ(order.report(0).distinct, 500U);
    }
}

}  // namespace
}  // namespace stoker::simulate
