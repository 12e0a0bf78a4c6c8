#include "sidecar/peers/payload_pool.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(PayloadPool, GivesAReleasedBufferToTheNextPayloadOfAboutThatSize) {
    const auto pool = std::make_shared<PayloadPool>();
    auto first = pool->take(110'000);
    const std::byte* place = first.get();
    first.reset();
    const auto second = pool->take(120'000);
    EXPECT_EQ(second.get(), place);
    EXPECT_NE(pool->take(120'000).get(), place) << "in use";
}

TEST(PayloadPool, BuffersMayOutliveIt) {
    auto pool = std::make_shared<PayloadPool>();
    std::vector<std::shared_ptr<std::byte[]>> taken;
    for (const std::size_t bytes : {1, 32'767, 32'768, 110'000, 4 << 20, 5 << 20}) {
        taken.push_back(pool->take(bytes));
        taken.back()[bytes - 1] = std::byte{7};
    }
    pool.reset();
    EXPECT_EQ(taken[3][110'000 - 1], std::byte{7});
}

TEST(PayloadPool, KeepsABoundedAmount) {
    const auto pool = std::make_shared<PayloadPool>();
    std::vector<std::shared_ptr<std::byte[]>> taken;
    for (int i = 0; i < 10; ++i) {
        taken.push_back(pool->take(4 << 20));
    }
    taken.clear();
    EXPECT_EQ(pool->free_bytes(), std::size_t{16} << 20U);
}

}  // namespace
}  // namespace stoker::sidecar
