#include "sidecar/core/sampling/replicate_scores.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ReplicateScores, ScoreServedIdsByTheirRankInTheBatch) {
    ReplicateScores scores{10, 10};
    scores.on_batch(std::vector<SampleIndex>{7, 2, 5}, std::vector<float>{0.5F, 3.0F, 0.1F});
    EXPECT_FLOAT_EQ(scores.score(5), std::log(10.0F));
    EXPECT_FLOAT_EQ(scores.score(7), std::log(11.0F));
    EXPECT_FLOAT_EQ(scores.score(2), std::log(12.0F));
    EXPECT_FLOAT_EQ(scores.score(0), std::log(10.0F)) << "unseen: the lowest score";
}

TEST(ReplicateScores, HaveTheLowestOrTheGivenScoreBeforeTheFirstLoss) {
    EXPECT_FLOAT_EQ(ReplicateScores(3, 10).score(1), std::log(10.F));
    EXPECT_FLOAT_EQ(ReplicateScores(3, 10, 1).score(1), 1);
}

TEST(ReplicateScores, GiveEqualLossesEqualScores) {
    ReplicateScores scores{4, 10};
    scores.on_batch(std::vector<SampleIndex>{0, 1, 2}, std::vector<float>{1.0F, 1.0F, 2.0F});
    EXPECT_EQ(scores.score(0), scores.score(1));
    EXPECT_FLOAT_EQ(scores.score(2), std::log(12.0F)) << "it beats two";
}

TEST(ReplicateScores, DoNotDependOnTheScaleOfLosses) {
    ReplicateScores small{4, 10};
    ReplicateScores large{4, 10};
    const std::vector<SampleIndex> samples{0, 1, 2, 3};
    small.on_batch(samples, std::vector<float>{0.1F, 0.4F, 0.3F, 0.2F});
    large.on_batch(samples, std::vector<float>{10.0F, 40.0F, 30.0F, 20.0F});
    for (const SampleIndex sample : samples) {
        EXPECT_EQ(small.score(sample), large.score(sample));
    }
}

TEST(ReplicateScores, IgnoreAndCountInvalidLosses) {
    ReplicateScores scores{4, 10};
    const auto used = scores.on_batch(
        std::vector<SampleIndex>{0, 1, 2, 9, 3},
        std::vector<float>{kNan, std::numeric_limits<float>::infinity(), 1.0F, 1.0F, -1.0F});
    EXPECT_EQ(used, 1U);
    const auto misfit =
        scores.on_batch(std::vector<SampleIndex>{0, 1}, std::vector<float>{1.0F, 2.0F, 3.0F});
    EXPECT_EQ(misfit, 0U);
}

TEST(ReplicateScores, MoveTheFloorWithTheMeanLoss) {
    ReplicateScores scores{2, 10};
    const std::vector<SampleIndex> samples{0, 1};
    scores.end_epoch();
    EXPECT_EQ(scores.floor(), 0) << "no losses yet";
    scores.on_batch(samples, std::vector<float>{1.0F, 3.0F});
    scores.end_epoch();
    EXPECT_DOUBLE_EQ(scores.floor(), 0.02);
    scores.on_batch(samples, std::vector<float>{1.0F, 2.0F});
    scores.end_epoch();
    EXPECT_DOUBLE_EQ(scores.floor(), 0.02 * std::exp(-0.25));
    scores.end_epoch();
    EXPECT_DOUBLE_EQ(scores.floor(), 0.02 * std::exp(-0.25)) << "an epoch without losses";
}

TEST(ReplicateScores, DrawInProportionToTheWeights) {
    ReplicateScores scores{3, 2};
    ReplicateScores::State state{{1.0F, 2.0F, 5.0F}, 1.0, 1.0};
    scores.set_state(state);
    Prng prng{4};
    const auto draws = scores.draw(110'000, prng);
    ASSERT_EQ(draws.size(), 110'000U);
    // Six standard deviations are at most 1000.
    EXPECT_NEAR(static_cast<double>(std::ranges::count(draws, 0U)), 20'000, 1000);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(draws, 1U)), 30'000, 1000);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(draws, 2U)), 60'000, 1000);
    const auto early = std::ranges::count(draws.begin(), draws.begin() + 11'000, 0U);
    EXPECT_NEAR(static_cast<double>(early), 2'000, 300) << "in a random order";
}

TEST(ReplicateScores, EqualScoresGiveEqualRanks) {
    ReplicateScores scores{4, 10};
    scores.set_state({{3.0F, 1.0F, 3.0F, 2.0F}, 0, 0});
    std::vector<float> ranks;
    scores.ranks(ranks);
    EXPECT_THAT(ranks, testing::ElementsAre(0.5F, 0.0F, 0.5F, 0.25F));
}

}  // namespace
}  // namespace stoker::sidecar
