#include "sidecar/simulate/scenario.h"

#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

EpochFigures epoch(std::uint64_t number, std::uint64_t hits, bool complete = true) {
    EpochFigures figures;
    figures.epoch = number;
    figures.complete = complete;
    figures.requested = 100;
    figures.hits = hits;
    figures.distinct = 90;
    figures.origin_samples = 100 - hits;
    figures.origin_bytes = Bytes{(100 - hits) * 10};
    figures.time = std::chrono::seconds{2};
    return figures;
}

Outcome outcome(std::vector<EpochFigures> epochs) {
    Outcome outcome;
    outcome.samples = 100;
    outcome.dataset_bytes = Bytes{1000};
    outcome.jobs = {{"exact", std::move(epochs)}};
    return outcome;
}

TEST(Scenario, MeansOmitFirstAndUnfinishedEpochs) {
    const auto means =
        means_of(outcome({epoch(0, 0), epoch(1, 20), epoch(2, 40), epoch(3, 99, false)}), 0, 1);
    EXPECT_EQ(means.epochs, 2U);
    EXPECT_DOUBLE_EQ(means.hit_ratio, 0.3);
    EXPECT_DOUBLE_EQ(means.coverage, 0.9);
    EXPECT_DOUBLE_EQ(means.origin_bytes, 0.7);
    EXPECT_DOUBLE_EQ(means.seconds, 2);
}

TEST(Scenario, AnUnfinishedEpochCountsByTheShareThatWasRead) {
    EXPECT_DOUBLE_EQ(
        fetches_per_job_epoch(outcome({epoch(0, 0), epoch(1, 20), epoch(2, 60, false)}), 1), 0.6);
}

TEST(Scenario, MeansOverNoEpochsAreZero) {
    EXPECT_EQ(means_of(outcome({epoch(0, 0)}), 0, 1).epochs, 0U);
    EXPECT_EQ(fetches_per_job_epoch(outcome({epoch(0, 0)}), 1), 0);
}

}  // namespace
}  // namespace stoker::simulate
