#include "sidecar/simulate/losses.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

double correlation(const Losses& a, const Losses& b, std::uint64_t samples) {
    double sum = 0;
    for (SampleIndex i = 0; i < samples; ++i) {
        sum += std::log(a.importance(i)) * std::log(b.importance(i));
    }
    return sum / static_cast<double>(samples);  // both have standard normal logarithms
}

TEST(Losses, HaveTheGivenCorrelation) {
    for (const double wanted : {0.0, 0.5, 0.9}) {
        const Losses a{20'000, {.correlation = wanted}, 1, 2};
        const Losses b{20'000, {.correlation = wanted}, 1, 3};
        EXPECT_NEAR(correlation(a, b, 20'000), wanted, 0.03);
    }
}

TEST(Losses, AreMultipliedByTheScale) {
    Losses plain{100, {}, 1, 2};
    Losses scaled{100, {.scale = 10}, 1, 2};
    for (SampleIndex i = 0; i < 100; ++i) {
        const float loss = plain.visit(i);
        EXPECT_NEAR(scaled.visit(i), 10 * loss, 1e-4 * loss);
    }
}

TEST(Losses, HaveLogNormalNoiseOfTheGivenDeviation) {
    Losses losses{1, {.noise = 0.3}, 1, 2};
    double sum = 0;
    double squares = 0;
    constexpr int kVisits = 20'000;
    for (int i = 0; i < kVisits; ++i) {
        const double z = std::log(losses.visit(0) / losses.importance(0));
        sum += z;
        squares += z * z;
    }
    EXPECT_NEAR(sum / kVisits, 0, 0.02);
    EXPECT_NEAR(std::sqrt(squares / kVisits), 0.3, 0.02);
}

// Ranks must not depend on the scale of the losses: law T4 of `stoker laws`.
TEST(Losses, KeepTheirOrderAndTheirTiesAtAnyScale) {
    for (const double scale : {10.0, 0.001, 3.7, 1e20}) {
        Losses plain{20'000, {}, 1, 2};
        Losses scaled{20'000, {.scale = scale}, 1, 2};
        std::vector<std::pair<float, float>> seen;
        for (SampleIndex i = 0; i < 20'000; ++i) {
            seen.emplace_back(plain.visit(i), scaled.visit(i));
        }
        std::sort(seen.begin(), seen.end());
        for (std::size_t i = 1; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i - 1].first < seen[i].first, seen[i - 1].second < seen[i].second);
        }
    }
}

}  // namespace
}  // namespace stoker::simulate
