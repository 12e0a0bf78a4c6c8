#include "sidecar/simulate/baselines/swap_order.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::simulate {
namespace {

// Prefers samples at random among the unread.
class AnyOrder final : public SwapOrder {
public:
    AnyOrder(std::uint64_t samples, std::uint64_t seed)
        : SwapOrder(samples, seed),
          samples_(samples),
          prng_(seed) {}

    void on_stored(SampleIndex) override {}

    void on_gone(SampleIndex) override {}

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

TEST(SwapOrder, ReadsEachSampleOnceWhateverIsPreferred) {
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
