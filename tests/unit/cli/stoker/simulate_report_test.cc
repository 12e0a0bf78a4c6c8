#include "cli/stoker/simulate_report.h"

#include <algorithm>

#include <cpprest/json.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/simulate/simulator.h"

namespace stoker::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<SeededOutcome> runs(simulate::Scenario& scenario, std::vector<std::uint64_t> seeds) {
    scenario.dataset.samples = 1000;
    scenario.jobs.resize(2);
    std::vector<SeededOutcome> runs;
    for (const std::uint64_t seed : seeds) {
        scenario.seed = seed;
        runs.push_back({seed, *simulate::run(scenario)});
    }
    return runs;
}

TEST(SimulateReport, JsonHoldsEveryEpochOfEveryJobAndSeed) {
    simulate::Scenario scenario;
    const auto outcomes = runs(scenario, {1, 2});
    const auto json = web::json::value::parse(simulate_json(scenario, outcomes));
    ASSERT_EQ(json.at("runs").size(), 2U);
    const auto& job = json.at("runs").at(1).at("jobs").at(0);
    ASSERT_EQ(job.at("epochs").size(), 3U);
    const auto& figures = outcomes[1].outcome.jobs[0].epochs[2];
    EXPECT_EQ(job.at("epochs").at(2).at("hits").as_number().to_uint64(), figures.hits);
    EXPECT_EQ(
        job.at("epochs").at(2).at("originBytes").as_number().to_uint64(),
        figures.origin_bytes.count());
    EXPECT_EQ(
        job.at("means").at("hitRatio").as_double(),
        simulate::means_of(outcomes[1].outcome, 0, 1).hit_ratio);
}

TEST(SimulateReport, TextHasALinePerEpochAndTheMeans) {
    simulate::Scenario scenario;
    const std::string text = simulate_text(scenario, runs(scenario, {1}));
    EXPECT_THAT(text, HasSubstr("means from epoch 1 on:"));
    EXPECT_THAT(text, HasSubstr("job 1: hit ratio 0.200, coverage 1.000"));
    EXPECT_EQ(std::ranges::count(text, '\n'), 14);
    EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(SimulateReport, TextShowsTheSpreadOverSeeds) {
    simulate::Scenario scenario;
    scenario.cache.policy = "lru";
    const std::string text = simulate_text(scenario, runs(scenario, {1, 2, 3}));
    EXPECT_THAT(text, HasSubstr("3 seeds (least - most)"));
    EXPECT_THAT(text, HasSubstr(" - "));
}

}  // namespace
}  // namespace stoker::cli
