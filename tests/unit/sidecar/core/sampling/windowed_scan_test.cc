// Compares the traffic of jobs that share a scan with the lower bound: the fastest job alone
// fetches at least (1 - cached) of the dataset in each of its epochs, so all jobs together fetch at
// least (1 - cached) * max(speed) / sum(speed) of it per job and epoch.
#include "sidecar/core/sampling/windowed_scan.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/sampling/scan_world.h"

namespace stoker::test {
namespace {

double bound(double cached, const std::vector<ScanJob>& jobs) {
    double sum = 0;
    double fastest = 0;
    for (const ScanJob& job : jobs) {
        sum += job.speed;
        fastest = std::max(fastest, job.speed);
    }
    return (1 - cached) * fastest / sum;
}

// Share of the dataset fetched per job and epoch.
double run(const ScanSetting& setting, const std::vector<ScanJob>& jobs) {
    ScanWorld world{setting, jobs};
    world.run(6);
    const auto& totals = world.totals();
    EXPECT_GE(totals.full_epochs, 6U);
    EXPECT_EQ(totals.missed, 0U);
    EXPECT_EQ(totals.repeats, 0U);
    EXPECT_LE(totals.window_max, setting.cached * (1 - setting.kept) * setting.samples + 0.5);
    EXPECT_LE(totals.resident_drift, setting.drift_max + 0.05);
    return totals.fetched_per_job_epoch;
}

TEST(SharedScan, FetchesOnceForJobsInLockStep) {
    for (const double kept : {0.75, 0.9, 0.95}) {
        for (std::uint32_t jobs = 1; jobs <= 4; ++jobs) {
            SCOPED_TRACE(testing::Message() << "kept " << kept << " jobs " << jobs);
            const double share = run({.kept = kept}, std::vector<ScanJob>(jobs));
            EXPECT_LE(share, 1.02 * (1 - kept * 0.2) / jobs);
            EXPECT_GE(share, bound(0.2, std::vector<ScanJob>(jobs)));
        }
    }
}

TEST(SharedScan, FetchesOnceForJobsThatStartAtRandomPhases) {
    Prng prng{seed()};
    for (int round = 0; round < 5; ++round) {
        const std::vector<ScanJob> jobs{{1, 0}, {1, prng.unit()}, {1, prng.unit()}};
        EXPECT_LE(run({.seed = prng()}, jobs), 0.28);
    }
}

TEST(SharedScan, FetchesOnlyForTheFastestJob) {
    const std::vector<ScanJob> jobs{{1, 0}, {0.5, 0}, {0.7, 0}, {0.9, 0}};
    for (const double kept : {0.75, 0.9}) {
        for (std::ptrdiff_t count = 2; count <= 4; ++count) {
            SCOPED_TRACE(testing::Message() << "kept " << kept << " jobs " << count);
            const std::vector<ScanJob> some(jobs.begin(), jobs.begin() + count);
            EXPECT_LE(run({.kept = kept}, some), 1.05 * bound(0.2, some));
        }
    }
}

}  // namespace
}  // namespace stoker::test
