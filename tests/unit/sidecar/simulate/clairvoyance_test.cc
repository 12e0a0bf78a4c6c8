#include "sidecar/simulate/clairvoyance.h"

#include <numeric>

#include <gmock/gmock.h>

#include "sidecar/core/sampling/clairvoyant_accesses.h"
#include "sidecar/simulate/simulator.h"

namespace stoker::simulate {
namespace {

using testing::HasSubstr;

Scenario scenario_of(double share, std::uint32_t epochs) {
    Scenario scenario;
    scenario.dataset.samples = 4000;
    scenario.cache.policy = "nopfs";
    scenario.cache.share = share;
    scenario.epochs = epochs;
    return scenario;
}

ClairvoyantFigures figures_of(const Scenario& scenario, const ClairvoyantSpec& spec) {
    auto figures = run_clairvoyant(scenario, spec);
    EXPECT_TRUE(figures.has_value()) << figures.error().message;
    return *std::move(figures);
}

std::uint64_t origin_reads(const ClairvoyantFigures& figures) {
    return std::accumulate(
        figures.epochs.begin(),
        figures.epochs.end(),
        std::uint64_t{0},
        [](std::uint64_t sum, const ClairvoyantEpoch& epoch) { return sum + epoch.origin; });
}

TEST(Clairvoyance, LocalShareFollowsTheBinomialLaw) {
    for (const std::uint32_t world : {2U, 3U, 8U}) {
        ClairvoyantSpec spec;
        spec.world = world;
        for (const double kept : {0.05, 1.0 / world, 0.7}) {
            const auto figures = figures_of(scenario_of(kept, 10), spec);
            EXPECT_NEAR(
                figures.favourite_share, sidecar::expected_local_share(10, world, kept), 0.015);
            EXPECT_NEAR(
                figures.favourite_expected, sidecar::expected_local_share(10, world, kept), 1e-6);
            EXPECT_GT(figures.favourite_share, kept);
            EXPECT_EQ(figures.reads, std::uint64_t{(4000 + world - 1) / world} * world * 10);
        }
    }
}

TEST(Clairvoyance, OwnersWithEnoughRoomReadEachSampleOnce) {
    ClairvoyantSpec spec;
    spec.placement = Placement::kPooled;
    const auto figures = figures_of(scenario_of(0.25, 6), spec);
    EXPECT_EQ(figures.origin_per_sample, 1);
    EXPECT_EQ(figures.epochs[0].origin, 4000U);
    EXPECT_EQ(origin_reads(figures), 4000U);
    // If each rank keeps the samples that it reads most, two ranks keep some and none keeps others.
    spec.placement = Placement::kOwn;
    EXPECT_GT(figures_of(scenario_of(0.25, 6), spec).origin_per_sample, 1.05);
}

TEST(Clairvoyance, ReadsAllFromTheOriginIfTheCacheHasNoRoom) {
    const auto figures = figures_of(scenario_of(0, 3), {});
    EXPECT_EQ(figures.origin_per_sample, 3);
    EXPECT_EQ(figures.favourite_share, 0);
    for (const ClairvoyantEpoch& epoch : figures.epochs) {
        EXPECT_EQ(epoch.local + epoch.peer, 0U);
    }
}

// As law T1 of `stoker laws`: for a single rank, knowing the future is no better than never
// evicting.
TEST(Clairvoyance, SingleRankFetchesSamplesThatDoNotFit) {
    ClairvoyantSpec spec;
    spec.world = 1;
    const auto figures = figures_of(scenario_of(0.2, 4), spec);
    EXPECT_EQ(figures.epochs[0].origin, 4000U);
    for (std::size_t epoch = 1; epoch < 4; ++epoch) {
        EXPECT_EQ(figures.epochs[epoch].origin, 3200U);
        EXPECT_EQ(figures.epochs[epoch].local, 800U);
    }
}

TEST(Clairvoyance, SecondTierServesSamplesBeyondTheFirst) {
    const auto scenario = scenario_of(0, 4);
    ClairvoyantSpec spec;
    spec.tiers = {{.share = 0.1}, {.share = 0.15}};
    ClairvoyantSpec wide;
    wide.tiers = {{.share = 0.25}};
    EXPECT_EQ(
        figures_of(scenario, spec).favourite_share, figures_of(scenario, wide).favourite_share);
}

TEST(Clairvoyance, AnEpochTakesAsLongAsItsSlowestSource) {
    auto scenario = scenario_of(1, 3);
    scenario.samples_per_second = 1e9;
    ClairvoyantSpec spec;
    spec.world = 1;
    spec.preprocess = 1e12;
    spec.staging.threads = 1;
    spec.staging.write = {{1, 1e15}};
    spec.tiers = {{.share = 1, .read = {{1, 1.0e9}}, .threads = 1}};
    spec.origin = {{1, 1.0e8}};
    const auto figures = figures_of(scenario, spec);
    const double bytes = 4000.0 * 110 * 1024;
    EXPECT_NEAR(figures.epochs[0].seconds, bytes / 1e8, 0.02 * bytes / 1e8);
    EXPECT_NEAR(figures.epochs[1].seconds, bytes / 1e9, 0.02 * bytes / 1e9);
}

TEST(Clairvoyance, StagingThreadsShareTheLink) {
    auto scenario = scenario_of(0, 2);
    scenario.samples_per_second = 1e9;
    const double bytes = 4000.0 * 110 * 1024;
    for (const double threads : {1.0, 4.0, 16.0}) {
        ClairvoyantSpec spec;
        spec.world = 2;
        spec.preprocess = 1e12;
        spec.staging = {0, {{1, 1e15}}, {{1, 1e15}}, threads};
        spec.origin = {{1, 1.0e8}};
        for (const ClairvoyantEpoch& epoch : figures_of(scenario, spec).epochs) {
            EXPECT_NEAR(epoch.seconds, bytes / 1e8, 0.001 * bytes / 1e8) << threads << " threads";
        }
    }
}

TEST(Clairvoyance, ResultsDependOnlyOnTheSeed) {
    auto scenario = scenario_of(0.25, 3);
    const auto first = figures_of(scenario, {});
    EXPECT_EQ(first, figures_of(scenario, {}));
    scenario.seed = 2;
    EXPECT_NE(first, figures_of(scenario, {}));
}

TEST(Clairvoyance, RejectsUnsupportedScenarios) {
    const auto why = [](const Scenario& scenario, const ClairvoyantSpec& spec) {
        const auto figures = run_clairvoyant(scenario, spec);
        return figures ? std::string{} : figures.error().message;
    };
    const auto scenario = scenario_of(0.2, 3);
    ClairvoyantSpec spec;
    spec.world = 0;
    EXPECT_THAT(why(scenario, spec), HasSubstr("1 rank or more"));
    spec.world = 4001;
    EXPECT_THAT(why(scenario, spec), HasSubstr("not more than samples"));
    spec = {};
    spec.tiers = {{.share = 1.5}};
    EXPECT_THAT(why(scenario, spec), HasSubstr("share of the dataset of 0 to 1"));
    spec = {};
    spec.peer = 0;
    EXPECT_THAT(why(scenario, spec), HasSubstr("above 0"));
    spec = {};
    spec.origin = {{2, 1e6}, {1, 1e6}};
    EXPECT_FALSE(why(scenario, spec).empty());
    auto jobs = scenario;
    jobs.jobs.resize(2);
    EXPECT_THAT(why(jobs, {}), HasSubstr("one job with contract exact"));
    EXPECT_THAT(run(scenario).error().message, HasSubstr("several nodes"));
}

}  // namespace
}  // namespace stoker::simulate
