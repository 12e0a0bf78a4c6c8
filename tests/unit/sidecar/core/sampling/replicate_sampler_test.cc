#include "sidecar/core/sampling/replicate_sampler.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include <gtest/gtest.h>

#include "sidecar/core/eviction/replicate_eviction.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"

namespace stoker::sidecar {
namespace {

std::unique_ptr<ReplicateSampler> make(
    std::uint32_t samples,
    SamplerSettings settings = {},
    const Residency& node = test::kEmptyNode) {
    settings.contract = "replicate";
    return *ReplicateSampler::create(node, samples, settings);
}

std::vector<SampleIndex> draw(ReplicateSampler& sampler, std::uint32_t rank, std::size_t count) {
    std::vector<Draw> draws;
    sampler.draw(rank, count, draws);
    std::vector<SampleIndex> samples;
    for (const Draw& one : draws) {
        samples.push_back(one.served);
    }
    return samples;
}

double normal(Prng& prng) {
    return std::sqrt(-2 * std::log1p(-prng.unit())) * std::cos(2 * std::numbers::pi * prng.unit());
}

struct Outcome {
    double hits = 0;
    double coverage = 0;
};

struct Everything final {
    bool operator()(SampleIndex /*sample*/) const { return true; }
};

// A trainer whose losses are the sample's own times noise per visit, and a cache of equal samples
// with ReplicateEviction.
class Trainer {
public:
    Trainer(double cached, const SamplerSettings& settings)
        : sampler_(make(kSamples, settings, node_)),
          room_(static_cast<std::uint64_t>(cached * kSamples)) {
        for (double& loss : losses_) {
            loss = std::exp(normal(prng_));
        }
    }

    Outcome run(std::uint64_t epochs, std::uint64_t discarded) {
        Outcome outcome;
        for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
            hits_ = 0;
            sampler_->begin_epoch(0, epoch, 0);
            for (;;) {
                const auto batch = draw(*sampler_, 0, 64);
                if (batch.empty()) {
                    break;
                }
                train(batch);
            }
            if (epoch >= discarded) {
                outcome.hits += static_cast<double>(hits_) / kSamples;
                outcome.coverage += static_cast<double>(sampler_->report(0).distinct) / kSamples;
            }
        }
        const auto counted = static_cast<double>(epochs - discarded);
        return {outcome.hits / counted, outcome.coverage / counted};
    }

private:
    static constexpr std::uint32_t kSamples = 20'000;

    void train(const std::vector<SampleIndex>& batch) {
        std::vector<float> losses;
        for (const SampleIndex sample : batch) {
            read(sample);
            losses.push_back(static_cast<float>(losses_[sample] * std::exp(0.3 * normal(prng_))));
        }
        sampler_->on_losses(0, batch, losses);
        for (const SampleIndex sample : batch) {
            eviction_.on_score(sample, sampler_->score(sample));
        }
    }

    void read(SampleIndex sample) {
        const bool hit = resident_[sample];
        hits_ += hit ? 1 : 0;
        std::vector<SampleIndex> victims;
        if (!hit &&
            (used_ < room_ || eviction_.make_room(sample, Bytes{1}, Everything{}, victims))) {
            for (const SampleIndex victim : victims) {
                eviction_.on_gone(victim);
                node_.drop(victim);
                resident_[victim] = false;
                --used_;
            }
            eviction_.on_resident(sample, Bytes{1});
            node_.store(sample);
            resident_[sample] = true;
            ++used_;
        }
        eviction_.on_read(sample, hit);
    }

    test::NodeContents node_;
    Prng prng_{5};
    std::vector<double> losses_ = std::vector<double>(kSamples);
    std::vector<bool> resident_ = std::vector<bool>(kSamples);
    std::unique_ptr<ReplicateSampler> sampler_;
    ReplicateEviction eviction_;
    std::uint64_t room_;
    std::uint64_t used_ = 0;
    std::uint64_t hits_ = 0;
};

Outcome train(double cached, const SamplerSettings& settings) {
    return Trainer{cached, settings}.run(14, 4);
}

// Law 4: hit ratio and coverage of replication if the first epoch is drawn, too, and unseen samples
// weigh 1.
TEST(ReplicateSampler, HitsAndCoverageFollowLawFour) {
    struct Row {
        double cached;
        double replication;
        double hits;
        double coverage;
    };

    const std::vector<Row> rows = {
        {.1, 1, .18, .62},
        {.1, 2, .30, .57},
        {.1, 3, .42, .51},
        {.2, 1, .33, .62},
        {.2, 2, .55, .51},
        {.2, 3, .85, .29},
        {.3, 1, .45, .62},
        {.3, 2, .81, .40},
        {.3, 3, 1.0, .22},
        {.5, 1, .66, .62},
        {.5, 2, 1.0, .36},
        {.5, 3, 1.0, .34}};
    for (const Row& row : rows) {
        SCOPED_TRACE(testing::Message() << "cached " << row.cached << " r " << row.replication);
        const Outcome outcome = train(
            row.cached,
            {.seed = 5,
             .parameters = {
                 {"replication", row.replication}, {"warmupEpochs", 0}, {"unseenScore", 1}}});
        EXPECT_NEAR(outcome.hits, row.hits, 0.03);
        EXPECT_NEAR(outcome.coverage, row.coverage, 0.03);
    }
}

// After a full first epoch, no score ln(k + 10) in batches of 64 exceeds 1.19 times the mean: a
// fifth of the samples gets at most 0.24 of the draws, each read three times, hence 0.71. (The
// remainder are samples admitted and read again in the same epoch.)
TEST(ReplicateSampler, HitsLessOftenAfterAFullFirstEpoch) {
    const Outcome outcome = train(.2, {.seed = 5, .parameters = {{"replication", 3}}});
    EXPECT_NEAR(outcome.hits, .73, 0.03);
    EXPECT_NEAR(outcome.coverage, .38, 0.03);
}

TEST(ReplicateSampler, DrawsInTheFirstEpochWithoutWarmUp) {
    const auto sampler = make(1000, {.parameters = {{"warmupEpochs", 0}}});
    sampler->begin_epoch(0, 0, 0);
    const auto samples = draw(*sampler, 0, 1000);
    EXPECT_NEAR(static_cast<double>(std::set(samples.begin(), samples.end()).size()), 632, 60)
        << "1 - 1/e of them";
}

// Ranks of a job that reconnect read the same samples as without the break.
TEST(ReplicateSampler, RestartsAnEpochWithTheSameDraws) {
    test::NodeContents node;
    const auto sampler = make(200, {.seed = 4, .ranks = 2}, node);
    for (const std::uint32_t rank : {0U, 1U}) {
        sampler->begin_epoch(rank, 1, 0);
    }
    const auto all = draw(*sampler, 0, 200);
    for (SampleIndex sample = 0; sample < 50; ++sample) {
        node.store(sample);  // would be read several times if the epoch had not begun
    }
    sampler->begin_epoch(0, 1, 30);
    EXPECT_EQ(draw(*sampler, 0, 200), std::vector(all.begin() + 30, all.end()));
}

TEST(ReplicateSampler, ShufflesTheFirstEpoch) {
    test::NodeContents node;
    node.store(5);
    const auto sampler = make(100, {}, node);
    sampler->begin_epoch(0, 0, 0);
    const auto samples = draw(*sampler, 0, 1000);
    EXPECT_EQ(samples.size(), 100U);
    EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), 100U);
}

TEST(ReplicateSampler, ReadsResidentsSeveralTimes) {
    for (const double replication : {1.0, 2.5, 3.0}) {
        const auto sampler = make(1000, {.seed = 1, .parameters = {{"replication", 1}}});
        test::NodeContents node;
        const auto replicating =
            make(1000, {.seed = 1, .parameters = {{"replication", replication}}}, node);
        for (SampleIndex sample = 0; sample < 100; ++sample) {
            node.store(sample);
        }
        sampler->begin_epoch(0, 1, 0);
        replicating->begin_epoch(0, 1, 0);
        const auto resident = [](SampleIndex sample) { return sample < 100; };
        const auto once = std::ranges::count_if(draw(*sampler, 0, 1000), resident);
        const auto samples = draw(*replicating, 0, 1000);
        EXPECT_EQ(samples.size(), 1000U);
        EXPECT_NEAR(
            static_cast<double>(std::ranges::count_if(samples, resident)),
            replication * static_cast<double>(once),
            0.5);
        const EpochReport report = replicating->report(0);
        EXPECT_EQ(report.requested, 1000U);
        EXPECT_EQ(report.distinct + report.repeated, report.requested);
        EXPECT_EQ(report.distinct, std::set(samples.begin(), samples.end()).size());
        EXPECT_EQ(report.skipped, 1000 - report.distinct);
    }
}

TEST(ReplicateSampler, RanksShareTheSameDraws) {
    for (const bool aggressive : {false, true}) {
        const auto alone = make(1000, {.seed = 3});
        const auto shared = make(1000, {.seed = 3, .ranks = 4});
        for (ReplicateSampler* sampler : {alone.get(), shared.get()}) {
            sampler->on_validation(aggressive ? 0.1 : -0.1);
            EXPECT_EQ(sampler->is_aggressive(), aggressive);
        }
        alone->begin_epoch(0, 2, 0);
        auto want = draw(*alone, 0, 1000);
        std::vector<SampleIndex> got;
        std::vector<std::size_t> most;
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            shared->begin_epoch(rank, 2, 0);
            const auto part = draw(*shared, rank, 1000);
            EXPECT_EQ(part.size(), 250U);
            const std::set<SampleIndex> distinct(part.begin(), part.end());
            if (aggressive) {
                EXPECT_GT(distinct.size(), 240U) << "copies go to different ranks";
            }
            got.insert(got.end(), part.begin(), part.end());
        }
        std::ranges::sort(got);
        std::ranges::sort(want);
        EXPECT_EQ(got, want);
    }
}

// Number of occurrences of each sample.
std::vector<std::uint32_t> times_of(const std::vector<SampleIndex>& samples, std::uint32_t count) {
    std::vector<std::uint32_t> times(count);
    for (const SampleIndex sample : samples) {
        ++times[sample];
    }
    return times;
}

// An epoch's draws, and the parts that the ranks of a world get.
struct Parts {
    Parts(std::uint32_t samples, std::uint32_t ranks, double accuracy_change) {
        const auto alone = make(samples, {.seed = 3});
        const auto shared = make(samples, {.seed = 3, .ranks = ranks});
        for (ReplicateSampler* sampler : {alone.get(), shared.get()}) {
            sampler->on_validation(accuracy_change);
        }
        alone->begin_epoch(0, 2, 0);
        drawn = times_of(draw(*alone, 0, samples), samples);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            shared->begin_epoch(rank, 2, 0);
            of_rank.push_back(times_of(draw(*shared, rank, samples), samples));
        }
    }

    std::vector<std::uint32_t> drawn;  // by sample
    std::vector<std::vector<std::uint32_t>> of_rank;
};

void expect_even_part(std::uint32_t part, std::uint32_t all, std::uint32_t ranks) {
    EXPECT_GE(part, all / ranks);
    EXPECT_LE(part, (all + ranks - 1) / ranks);
}

// PADS while validation improves: each rank gets an equal part of the most drawn samples, for any
// definition of most drawn, and an equal part of the copies of each sample.
TEST(ReplicateSampler, AggressiveRanksGetEqualPartsOfTheMostDrawn) {
    constexpr std::uint32_t kSamples = 6000;
    for (const std::uint32_t ranks : {2U, 3U, 4U}) {
        const Parts parts{kSamples, ranks, 0.1};
        for (std::uint32_t least = 1; least <= std::ranges::max(parts.drawn); ++least) {
            SCOPED_TRACE(testing::Message() << ranks << " ranks, drawn at least " << least);
            for (const auto& part : parts.of_rank) {
                std::uint32_t most_drawn = 0;
                std::uint32_t here = 0;
                for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
                    const std::uint32_t drawn = parts.drawn[sample];
                    most_drawn += drawn >= least ? drawn : 0;
                    here += drawn >= least ? part[sample] : 0;
                    if (drawn == least) {
                        expect_even_part(part[sample], drawn, ranks);
                    }
                }
                expect_even_part(here, most_drawn, ranks);
            }
        }
    }
}

// Otherwise n of N draws in random order are n drawn without replacement: a rank has none of the m
// copies of a sample with probability C(N-m, n) / C(N, n). The same without validation.
TEST(ReplicateSampler, NonAggressiveRanksGetCopiesAtRandom) {
    constexpr std::uint32_t kSamples = 24'000;
    for (const double change : {-0.1, 0.0}) {
        for (const std::uint32_t ranks : {2U, 3U, 4U}) {
            SCOPED_TRACE(testing::Message() << ranks << " ranks, change " << change);
            const Parts parts{kSamples, ranks, change};
            const std::uint32_t size = kSamples / ranks;
            double distinct = 0;
            double if_even = 0;
            for (const std::uint32_t copies : parts.drawn) {
                double none = 1;
                for (std::uint32_t i = 0; i < copies; ++i) {
                    none *= static_cast<double>(kSamples - size - i) /
                            static_cast<double>(kSamples - i);
                }
                distinct += 1 - none;
                if_even += std::min(1.0, static_cast<double>(copies) / ranks);
            }
            constexpr double kTolerance = 0.015;  // four standard deviations
            ASSERT_GT(if_even, distinct * (1 + 2 * kTolerance)) << "or nothing is told apart";
            for (const auto& part : parts.of_rank) {
                const auto got = kSamples - std::ranges::count(part, 0U);
                EXPECT_NEAR(static_cast<double>(got), distinct, distinct * kTolerance);
            }
        }
    }
}

TEST(ReplicateSampler, ForgetsOldValidations) {
    const auto sampler = make(10);
    for (const double change : {-9.0, 0.1, 0.1, 0.1}) {
        sampler->on_validation(change);
    }
    EXPECT_TRUE(sampler->is_aggressive());
}

TEST(ReplicateSampler, AssignsLossesToTheServedIds) {
    const auto sampler = make(50);
    sampler->begin_epoch(0, 0, 0);
    const auto batch = draw(*sampler, 0, 3);
    sampler->on_losses(0, batch, std::vector<float>{5.0F, 1.0F, 3.0F});
    EXPECT_GT(sampler->score(batch[0]), sampler->score(batch[2]));
    EXPECT_GT(sampler->score(batch[2]), sampler->score(batch[1]));
    EXPECT_EQ(sampler->report(0).losses_used, 3U);
    sampler->on_losses(0, batch, std::vector<float>{5.0F});
    EXPECT_EQ(sampler->report(0).losses_ignored, 3U);
    const auto importance = sampler->relative_importance();
    EXPECT_EQ(importance.size(), 50U);
    EXPECT_FLOAT_EQ(importance[batch[0]], 0.98F);
}

TEST(ReplicateSampler, ResumesFromASnapshot) {
    const auto sampler = make(50, {.seed = 2});
    sampler->begin_epoch(0, 0, 0);
    for (int batch = 0; batch < 5; ++batch) {
        const auto samples = draw(*sampler, 0, 10);
        std::vector<float> losses;
        for (const SampleIndex sample : samples) {
            losses.push_back(static_cast<float>(sample));
        }
        sampler->on_losses(0, samples, losses);
    }
    sampler->begin_epoch(0, 1, 0);
    const std::string state = sampler->snapshot();
    const auto resumed = make(50, {.seed = 2});
    ASSERT_TRUE(resumed->restore(state));
    resumed->begin_epoch(0, 1, 20);
    draw(*sampler, 0, 20);
    EXPECT_EQ(draw(*resumed, 0, 100), draw(*sampler, 0, 100));
    for (std::size_t size = 0; size < state.size(); ++size) {
        EXPECT_FALSE(resumed->restore(state.substr(0, size)));
    }
    EXPECT_FALSE(make(51)->restore(state));
}

TEST(ReplicateSampler, RejectsInvalidSettings) {
    const auto refused = [](std::uint32_t samples, SamplerSettings settings) {
        settings.contract = "replicate";
        return !ReplicateSampler::create(test::kEmptyNode, samples, settings).has_value();
    };
    EXPECT_TRUE(refused(10, {.parameters = {{"bias", 1}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"replication", 0.5}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"replication", 1.3}}}));
    EXPECT_TRUE(refused(10, {.parameters = {{"unseenScore", -1}}}));
    EXPECT_TRUE(refused(0, {}));
    EXPECT_FALSE(refused(10, {}));
}

}  // namespace
}  // namespace stoker::sidecar
