#include "sidecar/core/sampling/torch_permutation.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using domain::SampleIndex;

// tests/contract/golden/order.json has more of torch's orders.
TEST(TorchPermutation, IsTorchsRandperm) {
    EXPECT_EQ(torch_permutation(10, 0), (std::vector<SampleIndex>{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
}

TEST(TorchPermutation, HasEverySampleOnce) {
    for (const std::uint32_t count : {0U, 1U, 2U, 1000U}) {
        auto order = torch_permutation(count, 7);
        std::ranges::sort(order);
        std::vector<SampleIndex> all(count);
        std::iota(all.begin(), all.end(), SampleIndex{0});
        EXPECT_EQ(order, all);
    }
}

TEST(TorchPermutation, TakesTheLowerHalfOfTheSeed) {
    EXPECT_EQ(torch_permutation(100, 5), torch_permutation(100, (std::uint64_t{1} << 32U) + 5));
    EXPECT_NE(torch_permutation(100, 5), torch_permutation(100, 6));
}

}  // namespace
}  // namespace stoker::sidecar
