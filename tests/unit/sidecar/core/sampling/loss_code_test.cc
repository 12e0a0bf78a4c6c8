#include "sidecar/core/sampling/loss_code.h"

#include <limits>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

TEST(LossCode, CodesSortAsTheLossesDo) {
    Prng prng{test::seed()};
    for (int i = 0; i < 100'000; ++i) {
        const auto one = static_cast<float>(std::exp(40 * prng.unit() - 20));
        const auto other = static_cast<float>(std::exp(40 * prng.unit() - 20));
        if (one < other) {
            EXPECT_LE(LossCode::code_of(one), LossCode::code_of(other)) << one << ", " << other;
        }
    }
}

TEST(LossCode, LossReadsBackWithinASixteenth) {
    Prng prng{test::seed()};
    for (int i = 0; i < 100'000; ++i) {
        const auto loss = static_cast<float>(std::exp2(31.7 * prng.unit() - 19.8));
        EXPECT_NEAR(LossCode::loss_of(LossCode::code_of(loss)) / loss, 1, 1 / 16.0) << loss;
    }
}

TEST(LossCode, EveryCodeReadsBackAsItself) {
    for (unsigned code = 0; code < 256; ++code) {
        const auto byte = static_cast<std::uint8_t>(code);
        EXPECT_EQ(LossCode::code_of(LossCode::loss_of(byte)), byte);
    }
}

TEST(LossCode, ClampsLossesOutsideItsRange) {
    for (const float least : {0.0F, -0.0F, -7.0F, 1e-9F, std::numeric_limits<float>::lowest()}) {
        EXPECT_EQ(LossCode::code_of(least), 0) << least;
    }
    for (const float most : {4095.0F, 1e9F, std::numeric_limits<float>::max()}) {
        EXPECT_EQ(LossCode::code_of(most), 255) << most;
    }
}

}  // namespace
}  // namespace stoker::sidecar
