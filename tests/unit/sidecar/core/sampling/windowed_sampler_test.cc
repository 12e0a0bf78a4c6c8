#include "sidecar/core/sampling/windowed_sampler.h"

#include <algorithm>
#include <array>
#include <set>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kSamples = 101;

std::unique_ptr<WindowedSampler> make(
    SharedScan& scan, const EpochShape& shape, std::uint32_t rank = 0) {
    auto sampler = WindowedSampler::make(scan, shape, rank);
    EXPECT_TRUE(sampler.has_value());
    return *std::move(sampler);
}

std::vector<SampleIndex> draw(WindowedSampler& sampler, std::uint32_t rank, std::size_t count) {
    std::vector<Draw> draws;
    sampler.draw(rank, count, draws);
    std::vector<SampleIndex> samples;
    for (const Draw& one : draws) {
        EXPECT_EQ(one.requested, one.served);
        samples.push_back(one.served);
    }
    return samples;
}

TEST(WindowedSampler, GivesEachSampleOncePerEpoch) {
    SharedScan scan{kSamples, {.window_samples = 10}, 1};
    const auto sampler = make(scan, {.count = kSamples});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        sampler->begin_epoch(0, epoch, 0);
        const auto samples = draw(*sampler, 0, 1000);
        EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), kSamples);
        EXPECT_EQ(samples.size(), kSamples);
        EXPECT_EQ(
            sampler->report(0),
            (EpochReport{.epoch = epoch, .requested = kSamples, .distinct = kSamples}));
    }
}

TEST(WindowedSampler, RanksOnDifferentNodesShareAnEpoch) {
    const EpochShape shape{.count = kSamples, .seed = 5, .ranks = 4};
    std::multiset<SampleIndex> own;
    std::uint64_t repeated = 0;
    for (std::uint32_t node = 0; node < 2; ++node) {
        SharedScan scan{kSamples, {.window_samples = 10}, node};
        const auto samplers =
            std::array{make(scan, shape, 2 * node), make(scan, shape, 2 * node + 1)};
        for (std::uint32_t local = 0; local < 2; ++local) {
            const auto& sampler = samplers[local];
            const std::uint32_t rank = 2 * node + local;
            sampler->begin_epoch(rank, 7, 0);
            std::vector<Draw> draws;
            sampler->draw(rank, 1000, draws);
            EXPECT_EQ(draws.size(), 26U);
            for (const Draw& one : draws) {
                if (one.kind == Draw::Kind::kPlain) {
                    own.insert(one.served);
                }
            }
            repeated += sampler->report(rank).repeated;
        }
    }
    EXPECT_EQ(own.size(), kSamples);
    EXPECT_EQ(std::set(own.begin(), own.end()).size(), kSamples);
    EXPECT_EQ(repeated, 3U);
}

TEST(WindowedSampler, DrawsTheForeseenSamples) {
    SharedScan scan{kSamples, {.window_samples = 16}, 1};
    const auto sampler = make(scan, {.count = kSamples});
    sampler->begin_epoch(0, 0, 0);
    std::vector<SampleIndex> foreseen;
    sampler->foresee(0, 5, foreseen);
    EXPECT_EQ(foreseen.size(), 5U);
    EXPECT_EQ(draw(*sampler, 0, 5), foreseen) << "nothing is stored: they come in feed order";
}

TEST(WindowedSampler, ResumesAtTheTrainersPosition) {
    SharedScan scan{kSamples, {.window_samples = 10}, 1};
    const EpochShape shape{.count = kSamples, .seed = 3};
    const auto sampler = make(scan, shape);
    sampler->begin_epoch(0, 4, 0);
    const auto trained = draw(*sampler, 0, 40);
    draw(*sampler, 0, 15);  // prefetched by the loader, never trained on
    const std::string state = sampler->snapshot();

    SharedScan other{kSamples, {.window_samples = 10}, 2};
    const auto resumed = make(other, shape);
    ASSERT_TRUE(resumed->restore(state));
    resumed->begin_epoch(0, 4, 40);
    EXPECT_EQ(resumed->report(0).requested, 40U);
    auto all = trained;
    const auto rest = draw(*resumed, 0, 1000);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all.size(), kSamples);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), kSamples);
    resumed->begin_epoch(0, 5, 0);
    EXPECT_EQ(draw(*resumed, 0, 1000).size(), kSamples);
}

TEST(WindowedSampler, RejectsTheStateOfAnotherSampler) {
    SharedScan scan{kSamples, {}, 1};
    const auto sampler = make(scan, {.count = kSamples, .seed = 3});
    const auto other = make(scan, {.count = kSamples, .seed = 4});
    const std::string state = other->snapshot();
    EXPECT_FALSE(sampler->restore(state));
    for (std::size_t size = 0; size < state.size(); ++size) {
        EXPECT_FALSE(other->restore(state.substr(0, size)));
    }
    EXPECT_FALSE(other->restore(state + "x"));
    EXPECT_TRUE(other->restore(state));
}

TEST(WindowedSampler, RejectsWrongCountsAndRanksAndTooManyReaders) {
    SharedScan scan{kSamples, {}, 1};
    const auto code = [&](const EpochShape& shape, std::uint32_t rank) {
        return WindowedSampler::make(scan, shape, rank).error().code;
    };
    EXPECT_EQ(code({.count = 7}, 0), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code({.count = kSamples, .ranks = 2}, 2), ErrorCode::kInvalidArgument);
    {
        std::vector<std::unique_ptr<WindowedSampler>> many;
        for (std::uint32_t i = 0; i < NeedIndex::kReadersMax; ++i) {
            many.push_back(make(scan, {.count = kSamples}));
        }
        EXPECT_EQ(code({.count = kSamples}, 0), ErrorCode::kResourceExhausted);
    }
    EXPECT_TRUE(scan.join().has_value()) << "samplers that are gone have left the scan";
}

TEST(WindowedSampler, IgnoresLossesAndCountsThem) {
    SharedScan scan{kSamples, {}, 1};
    const auto sampler = make(scan, {.count = kSamples});
    sampler->begin_epoch(0, 0, 0);
    const std::vector<SampleIndex> samples{1, 2};
    const std::vector<float> losses{0.5F, 0.25F};
    sampler->on_losses(0, samples, losses);
    EXPECT_EQ(sampler->report(0).losses_ignored, 2U);
    EXPECT_TRUE(sampler->relative_importance().empty());
}

}  // namespace
}  // namespace stoker::sidecar
