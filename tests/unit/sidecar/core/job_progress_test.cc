#include "sidecar/core/job_progress.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

constexpr StreamId kFirst{11};
constexpr StreamId kSecond{12};

TEST(JobProgress, IsAllZeroBeforeAnEpochBegins) {
    JobProgress job;
    job.connect(kFirst);
    job.read(kFirst, 0, 5);
    EXPECT_EQ(job.sum(), EpochProgress{});
}

TEST(JobProgress, SumsTheStreamsOfAllRanks) {
    JobProgress job;
    job.connect(kFirst);
    job.connect(kSecond);
    job.begin(kFirst, 0, {3, 100, 0});
    job.begin(kSecond, 1, {3, 100, 40});
    job.read(kFirst, 3, 7);
    job.read(kSecond, 3, 10);
    EXPECT_EQ(job.sum(), (EpochProgress{3, 200, 57}));
}

TEST(JobProgress, KeepsTheProgressOfAnEndedStream) {
    JobProgress job;
    job.connect(kFirst);
    job.connect(kFirst);  // a worker
    job.begin(kFirst, 0, {0, 100, 0});
    job.disconnect(kFirst);
    job.read(kFirst, 0, 100);
    job.disconnect(kFirst);
    EXPECT_EQ(job.sum(), (EpochProgress{0, 100, 100}));
}

TEST(JobProgress, NewStreamOfTheRankReplacesItsProgress) {
    JobProgress job;
    job.connect(kFirst);
    job.begin(kFirst, 0, {0, 100, 100});
    job.disconnect(kFirst);
    job.connect(kSecond);
    EXPECT_EQ(job.sum(), (EpochProgress{0, 100, 100})) << "which only looks at the labels so far";
    job.begin(kSecond, 0, {1, 100, 0});
    job.read(kSecond, 1, 20);
    EXPECT_EQ(job.sum(), (EpochProgress{1, 100, 20}));
}

TEST(JobProgress, RanksInAnEarlierEpochCountAsUnread) {
    JobProgress job;
    job.connect(kFirst);
    job.connect(kSecond);
    job.begin(kFirst, 0, {4, 100, 0});
    job.begin(kSecond, 1, {3, 100, 99});
    job.read(kFirst, 4, 1);
    EXPECT_EQ(job.sum(), (EpochProgress{4, 200, 1}));
}

TEST(JobProgress, IgnoresSamplesOfAnotherEpoch) {
    JobProgress job;
    job.connect(kFirst);
    job.begin(kFirst, 0, {1, 100, 0});
    job.read(kFirst, 0, 5);
    job.drawn(kFirst, 0, 5, true);
    EXPECT_EQ(job.sum(), (EpochProgress{1, 100, 0}));
}

TEST(JobProgress, NeverReadsMoreThanTheEpochHas) {
    JobProgress job;
    job.connect(kFirst);
    job.begin(kFirst, 0, {0, 10, 12});
    EXPECT_EQ(job.sum(), (EpochProgress{0, 10, 10}));
    job.read(kFirst, 0, 5);
    EXPECT_EQ(job.sum(), (EpochProgress{0, 10, 10}));
}

TEST(JobProgress, SelectiveEpochIsAsLongAsTheNumberOfDrawnSamples) {
    JobProgress job;
    job.connect(kFirst);
    job.begin(kFirst, 0, {2, 100, 10});
    job.drawn(kFirst, 2, 30, false);
    job.read(kFirst, 2, 30);
    EXPECT_EQ(job.sum(), (EpochProgress{2, 100, 40}));
    job.drawn(kFirst, 2, 20, true);
    job.read(kFirst, 2, 20);
    EXPECT_EQ(job.sum(), (EpochProgress{2, 60, 60}));
}

TEST(JobProgress, BoundsTheNumberOfStoredRanks) {
    JobProgress job;
    for (std::uint32_t i = 1; i <= 2 * JobProgress::kStreamsMax; ++i) {
        const StreamId stream{i};
        job.connect(stream);
        job.begin(stream, i, {0, 1, 0});
        job.disconnect(stream);
    }
    EXPECT_LE(job.sum().samples, JobProgress::kStreamsMax);
    EXPECT_GE(job.sum().samples, 1U);
}

}  // namespace
}  // namespace stoker::sidecar
