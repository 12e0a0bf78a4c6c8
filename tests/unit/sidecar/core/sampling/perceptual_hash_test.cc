#include "sidecar/core/sampling/perceptual_hash.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using Pixels = std::vector<std::uint8_t>;

// Smooth: a few random blobs.
Pixels picture(std::uint32_t side, Prng& luck) {
    std::vector<double> light(std::size_t{side} * side, 0);
    for (int blob = 0; blob < 6; ++blob) {
        const double x0 = luck.unit();
        const double y0 = luck.unit();
        for (std::uint32_t y = 0; y < side; ++y) {
            for (std::uint32_t x = 0; x < side; ++x) {
                const double dx = x / static_cast<double>(side) - x0;
                const double dy = y / static_cast<double>(side) - y0;
                light[y * side + x] += 40 / (1 + 40 * (dx * dx + dy * dy));
            }
        }
    }
    Pixels pixels;
    for (const double value : light) {
        pixels.push_back(static_cast<std::uint8_t>(std::min(value, 255.0)));
    }
    return pixels;
}

TEST(PerceptualHash, ComparesCellsWithTheirMean) {
    Pixels halves(16 * 16, 10);
    std::fill(halves.begin() + 128, halves.end(), 200);  // the lower half is bright
    EXPECT_EQ(average_hash({16, 16, halves}), Fingerprint{0x00000000FFFFFFFF});
}

TEST(PerceptualHash, ComparesCellsWithTheirNeighbours) {
    Pixels rising(18 * 8);
    for (std::size_t i = 0; i < rising.size(); ++i) {
        rising[i] = static_cast<std::uint8_t>(10 * (i % 18));
    }
    EXPECT_EQ(difference_hash({18, 8, rising}), ~Fingerprint{0});
    std::reverse(rising.begin(), rising.end());
    EXPECT_EQ(difference_hash({18, 8, rising}), Fingerprint{0});
}

TEST(PerceptualHash, IsNearForNearDuplicatesAndFarForOthers) {
    Prng luck(test::seed());
    constexpr int kRounds = 20;
    int near = 0;
    int far = 0;
    for (int round = 0; round < kRounds; ++round) {
        const Pixels one = picture(32, luck);
        const Pixels other = picture(32, luck);
        Pixels noisy = one;
        for (auto& pixel : noisy) {
            pixel = static_cast<std::uint8_t>(std::min<std::uint64_t>(255, pixel + luck.below(3)));
        }
        const auto hash = *average_hash({32, 32, one});
        near += static_cast<int>(distance(hash, *average_hash({32, 32, noisy})));
        far += static_cast<int>(distance(hash, *average_hash({32, 32, other})));
    }
    // On the average: two pictures may be alike by chance.
    EXPECT_LE(near, 3 * kRounds);
    EXPECT_GE(far, 10 * kRounds);
}

TEST(PerceptualHash, ReadsImagesOfAnySize) {
    for (const std::uint32_t width : {1U, 3U, 7U, 8U, 100U}) {
        for (const std::uint32_t height : {1U, 5U, 9U}) {
            const Pixels pixels(std::size_t{width} * height, 77);
            EXPECT_EQ(average_hash({width, height, pixels}), Fingerprint{0});
            EXPECT_EQ(difference_hash({width, height, pixels}), Fingerprint{0});
        }
    }
}

TEST(PerceptualHash, RefusesWhatIsNoImage) {
    const Pixels pixels(10, 1);
    EXPECT_EQ(average_hash({3, 3, pixels}), std::nullopt);
    EXPECT_EQ(difference_hash({0, 0, {}}), std::nullopt);
    EXPECT_EQ(average_hash({1U << 31U, 2, pixels}), std::nullopt);
}

TEST(ContentHash, DiffersInHalfOfItsBitsForOneOther) {
    std::vector<std::byte> bytes(100, std::byte{7});
    const Fingerprint before = content_hash(bytes);
    EXPECT_EQ(before, content_hash(bytes));
    bytes[50] = std::byte{8};
    EXPECT_NEAR(distance(before, content_hash(bytes)), 32, 20);
    EXPECT_NE(content_hash({}), content_hash(std::span{bytes}.first(1)));
}

}  // namespace
}  // namespace stoker::sidecar
