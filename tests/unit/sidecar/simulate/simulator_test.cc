#include "sidecar/simulate/simulator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::simulate {
namespace {

Outcome outcome_of(const Scenario& scenario) {
    auto outcome = run(scenario);
    EXPECT_TRUE(outcome.has_value());
    return *std::move(outcome);
}

TEST(Simulator, EqualScenariosHaveEqualOutcomes) {
    Scenario scenario;
    scenario.seed = test::seed();
    scenario.jobs.resize(3);
    scenario.jobs[1].speed = 0.5;
    scenario.cache.policy = "lru";
    scenario.cache.window_share = 0.1;
    const Outcome a = outcome_of(scenario);
    const Outcome b = outcome_of(scenario);
    for (std::size_t job = 0; job < 3; ++job) {
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
            EXPECT_EQ(a.jobs[job].epochs[epoch].hits, b.jobs[job].epochs[epoch].hits);
            EXPECT_EQ(a.jobs[job].epochs[epoch].time, b.jobs[job].epochs[epoch].time);
        }
    }
}

TEST(Simulator, EveryReadIsAHitOrAFetch) {
    for (const char* policy : {"never-evict", "lru", "lfu", "quiver"}) {
        Scenario scenario;
        scenario.seed = test::seed();
        scenario.jobs.resize(2);
        scenario.dataset.sigma = 0.8;
        scenario.cache.policy = policy;
        scenario.cache.window_share = 0.2;
        std::uint64_t served = 0;
        for (const JobFigures& job : outcome_of(scenario).jobs) {
            for (const EpochFigures& epoch : job.epochs) {
                served += epoch.hits + epoch.origin_samples;
                EXPECT_EQ(epoch.distinct, 20'000U) << policy;
            }
        }
        EXPECT_EQ(served, 6 * 20'000U) << policy;
    }
}

// Prefetched samples stay until they are read, even if large samples make room for small ones.
TEST(Simulator, ImportanceJobFetchesOncePerRead) {
    for (const double family : {0.0, 1.0}) {
        for (const double sigma : {0.0, 0.8}) {
            Scenario scenario;
            scenario.seed = test::seed();
            scenario.epochs = 7;
            scenario.dataset.samples = 5000;
            scenario.dataset.sigma = sigma;
            scenario.samples_per_second = 1e7;  // data-bound: it draws exactly the foreseen samples
            scenario.cache.window_share = 0.2;
            scenario.jobs[0].contract = "importance";
            scenario.jobs[0].parameters = {
                {"family", family}, {"warmup-epochs", 2}, {"loss-decay", 0.1}};
            for (const EpochFigures& epoch : outcome_of(scenario).jobs[0].epochs) {
                EXPECT_EQ(epoch.hits + epoch.origin_samples, epoch.requested)
                    << "epoch " << epoch.epoch << ", family " << family << ", sigma " << sigma;
            }
        }
    }
}

TEST(Simulator, WindowedJobsReadEachSampleOnceAtAnySpeedAndDepth) {
    for (const std::uint32_t ahead : {0U, 2U, 40U}) {
        Scenario scenario;
        scenario.seed = test::seed();
        scenario.dataset.samples = 5000;
        scenario.dataset.sigma = 0.8;
        scenario.ahead = ahead;
        scenario.cache.window_share = 0.1;
        scenario.jobs.resize(3);
        for (std::size_t i = 0; i < 3; ++i) {
            scenario.jobs[i].contract = "windowed";
            scenario.jobs[i].speed = 1 - 0.3 * static_cast<double>(i);
        }
        for (const JobFigures& job : outcome_of(scenario).jobs) {
            for (const EpochFigures& epoch : job.epochs) {
                EXPECT_EQ(epoch.distinct, 5000U);
                EXPECT_EQ(epoch.repeated, 0U);
            }
        }
    }
}

// Bounds: the policy's own simulation (windowed_scan_test.cc), plus 3 %.
TEST(Simulator, WindowedJobsFetchAsThePolicyPredicts) {
    struct Case {
        std::vector<double> speeds;
        std::vector<double> starts;  // in epochs
        std::uint32_t ahead;
        double limit;
    };

    for (const Case& one :
         {Case{{1}, {0}, 2, 0.85},
          Case{{1, 1, 1}, {0, 0, 0}, 2, 0.283},
          Case{{1, 1, 1}, {0, 0.3, 0.8}, 2, 0.283},
          Case{{1, 0.5, 0.7}, {0, 0, 0}, 1, 0.369}}) {
        Scenario scenario;
        scenario.seed = test::seed();
        scenario.dataset.samples = 5000;
        scenario.batch = 32;
        scenario.ahead = one.ahead;
        scenario.epochs = 6;
        scenario.until_first_ends = true;
        scenario.cache.window_share = 0.25;
        scenario.jobs.resize(one.speeds.size());
        for (std::size_t job = 0; job < one.speeds.size(); ++job) {
            scenario.jobs[job].contract = "windowed";
            scenario.jobs[job].speed = one.speeds[job];
            scenario.jobs[job].start =
                std::chrono::milliseconds{std::llround(2500 * one.starts[job])};
        }
        EXPECT_LE(fetches_per_job_epoch(outcome_of(scenario), 1), one.limit * 1.03)
            << one.speeds.size() << " jobs, the last one at " << one.starts.back() << " and "
            << one.speeds.back();
    }
}

TEST(Simulator, CountsOdsRefillsSeparatelyFromReads) {
    Scenario scenario;
    scenario.seed = test::seed();
    scenario.jobs.resize(2);
    scenario.cache.policy = "ods";
    std::uint64_t served = 0;
    std::uint64_t refills = 0;
    for (const JobFigures& job : outcome_of(scenario).jobs) {
        for (const EpochFigures& epoch : job.epochs) {
            served += epoch.hits + epoch.origin_samples - epoch.refill_samples;
            refills += epoch.refill_samples;
        }
    }
    // Job A may read a sample at the origin while the node fetches the sample for job B. Then B's
    // read is a hit, but B's fetch counts as a read too: a few reads count twice.
    EXPECT_GE(served, 6 * 20'000U);
    EXPECT_LE(served, 6 * 20'000U + 5);
    EXPECT_GT(refills, 6 * 4000U);
}

TEST(Simulator, NoPolicyBeatsBelady) {
    for (const double w : {0.1, 0.4, 0.8}) {
        Scenario scenario;
        scenario.dataset.samples = 2000;
        scenario.seed = test::seed();
        scenario.cache.share = w;
        scenario.cache.policy = "belady";
        const double best = means_of(outcome_of(scenario), 0, 1).hit_ratio;
        for (const char* policy : {"never-evict", "lru", "lfu", "quiver"}) {
            scenario.cache.policy = policy;
            EXPECT_LE(means_of(outcome_of(scenario), 0, 1).hit_ratio, best + 0.002) << policy;
        }
    }
}

TEST(Simulator, CacheOfTheWholeDatasetFetchesItOnce) {
    Scenario scenario;
    scenario.cache.share = 1;
    scenario.jobs.resize(2);
    const Outcome outcome = outcome_of(scenario);
    std::uint64_t fetched = 0;
    for (const JobFigures& job : outcome.jobs) {
        for (const EpochFigures& epoch : job.epochs) {
            fetched += epoch.origin_samples;
        }
    }
    EXPECT_EQ(fetched, 20'000U);
}

TEST(Simulator, MoreBandwidthIsNeverSlower) {
    Scenario scenario;
    scenario.origin.bytes_per_second = mib(50);
    const double slow = means_of(outcome_of(scenario), 0, 1).seconds;
    scenario.origin.bytes_per_second = mib(100);
    const double fast = means_of(outcome_of(scenario), 0, 1).seconds;
    EXPECT_LT(fast, slow);
    EXPECT_GE(fast, 10) << "20,000 samples at 2,000 a second";
    // 0.8 of the dataset crosses the link in an epoch.
    EXPECT_NEAR(slow, 0.8 * 20'000 * 110 / 1024 / 50, 1);
}

TEST(Simulator, JobStartsAtItsStartTime) {
    Scenario scenario;
    scenario.jobs.resize(2);
    scenario.jobs[1].start = std::chrono::hours{1};
    const Outcome outcome = outcome_of(scenario);
    EXPECT_EQ(outcome.jobs[1].epochs.size(), 3U);
    EXPECT_LT(outcome.jobs[1].epochs[0].time, std::chrono::hours{1});
}

TEST(Simulator, EndsWithTheFastestJobIfSet) {
    Scenario scenario;
    scenario.jobs.resize(2);
    scenario.jobs[1].speed = 0.1;
    scenario.until_first_ends = true;
    const Outcome outcome = outcome_of(scenario);
    EXPECT_EQ(outcome.jobs[0].epochs.size(), 3U);
    ASSERT_EQ(outcome.jobs[1].epochs.size(), 1U);
    EXPECT_FALSE(outcome.jobs[1].epochs[0].complete);
}

// The epochs shrink to minFraction of the samples, and the node keeps the most important of these.
TEST(Simulator, FamilyIowaLeavesOutMoreEachEpoch) {
    Scenario scenario;
    scenario.jobs[0].contract = "importance";
    scenario.jobs[0].parameters = {
        {"family", 1}, {"out-rate", 1}, {"loss-decay", 0.3}, {"recall-after", 100}};
    scenario.epochs = 6;
    const Outcome outcome = outcome_of(scenario);
    std::uint64_t before = 20'000;
    for (const EpochFigures& epoch : outcome.jobs[0].epochs) {
        EXPECT_EQ(epoch.distinct, epoch.requested) << "nothing is read twice";
        EXPECT_LE(epoch.requested, before) << epoch.epoch;
        before = epoch.requested;
    }
    EXPECT_EQ(before, 6000U);
    EXPECT_EQ(outcome.jobs[0].epochs[0].requested, 20'000U);
    EXPECT_GT(means_of(outcome, 0, 4).hit_ratio, 0.5) << "4,000 of 6,000 are on the node";
}

// Each sample that is not left out is read once per epoch, so none is worth displacing another.
TEST(Simulator, FamilyIowaFetchesNoMoreThanExact) {
    Scenario scenario;
    scenario.cache.window_share = 0.1;
    scenario.epochs = 5;
    const Outcome exact = outcome_of(scenario);
    scenario.jobs[0].contract = "importance";
    scenario.jobs[0].parameters = {{"family", 1}, {"loss-decay", 0.1}};
    const Outcome outcome = outcome_of(scenario);
    for (std::size_t epoch = 0; epoch < scenario.epochs; ++epoch) {
        const EpochFigures& figures = outcome.jobs[0].epochs[epoch];
        EXPECT_LE(figures.origin_samples, exact.jobs[0].epochs[epoch].origin_samples) << epoch;
        EXPECT_GE(figures.hits, epoch == 0 ? 0U : 3400U) << epoch << ": of 3,600 on the node";
    }
}

TEST(Simulator, ChunkShuffleReadsEachSampleOnce) {
    Scenario scenario;
    scenario.jobs[0].contract = "windowed";
    scenario.jobs[0].parameters = {{"chunk-group", 10}};
    const Outcome outcome = outcome_of(scenario);
    for (const EpochFigures& epoch : outcome.jobs[0].epochs) {
        EXPECT_EQ(epoch.distinct, 20'000U);
        EXPECT_EQ(epoch.repeated, 0U);
    }
    EXPECT_NEAR(means_of(outcome, 0, 1).hit_ratio, 0.2, 0.001);
}

// Parameter bounds and messages are the sidecar's.
TEST(Simulator, ReturnsTheSidecarsErrorAboutAParameter) {
    Scenario scenario;
    scenario.jobs[0].contract = "replicate";
    scenario.jobs[0].parameters = {{"replication", 1.3}};
    const auto outcome = run(scenario);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
}

TEST(Simulator, ImportanceJobsShareACacheRankedByImportance) {
    Scenario scenario;
    scenario.jobs.resize(2);
    for (JobSpec& job : scenario.jobs) {
        job.contract = "replicate";
        job.parameters = {{"replication", 2}};
    }
    scenario.epochs = 5;
    scenario.discard = 3;
    scenario.cache.policy = "never-evict";
    const double never = means_of(outcome_of(scenario), 0, 3).hit_ratio;
    scenario.cache.policy = "";
    EXPECT_GT(means_of(outcome_of(scenario), 0, 3).hit_ratio, never);
}

// Fetches of two jobs for every sample read, by the policy (empty: the sidecar's choice).
double pair_fetches(const JobSpec& first, const JobSpec& second, const char* policy) {
    Scenario scenario;
    scenario.dataset.samples = 2500;
    scenario.cache.share = .22;
    scenario.cache.window_share = .09;
    scenario.cache.policy = policy;
    scenario.jobs = {first, second};
    scenario.epochs = 9;
    return fetches_per_job_epoch(outcome_of(scenario), 6);
}

// One rule chooses the eviction policy for all jobs of a node. The node fetches at most a few
// percent (by chance) more than if it never evicted. The order of the jobs does not matter.
TEST(Simulator, ChoosesAGoodPolicyForEveryPairOfContracts) {
    std::vector<JobSpec> jobs;
    for (const char* contract : {"exact", "windowed", "importance", "importance", "replicate"}) {
        jobs.emplace_back().contract = contract;
    }
    jobs[3].parameters = {{"family", 1}, {"loss-decay", .1}};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        for (std::size_t j = std::max<std::size_t>(i, 2); j < jobs.size(); ++j) {
            const double chosen = pair_fetches(jobs[i], jobs[j], "");
            const double reversed = pair_fetches(jobs[j], jobs[i], "");
            EXPECT_NEAR(chosen, reversed, .08 * chosen) << i << " " << j;
            EXPECT_LT(chosen, 1.05 * pair_fetches(jobs[i], jobs[j], "never-evict"))
                << i << " " << j;
        }
    }
}

RecordedReads shuffled_epochs(std::uint64_t seed) {
    RecordedReads recorded;
    Prng prng{seed};
    for (int epoch = 0; epoch < 3; ++epoch) {
        auto& order = recorded.epochs.emplace_back(20'000);
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), prng);
    }
    return recorded;
}

TEST(Simulator, RecordedEpochsCostAsMuchAsItsOwn) {
    for (const char* policy : {"", "lru"}) {
        Scenario scenario;
        scenario.seed = test::seed();
        scenario.cache.policy = policy;
        const double own = means_of(outcome_of(scenario), 0, 1).origin_samples;
        auto recorded = std::make_shared<RecordedReads>(shuffled_epochs(scenario.seed));
        recorded->plans = true;
        scenario.jobs[0].recorded = recorded;
        EXPECT_NEAR(means_of(outcome_of(scenario), 0, 1).origin_samples, own, 0.01) << policy;
    }
}

TEST(Simulator, RecordedEpochsMayBeEmptyOrRepeatSamples) {
    Scenario scenario;
    scenario.cache.share = 1;
    scenario.jobs[0].recorded =
        std::make_shared<RecordedReads>(RecordedReads{{{}, {7, 7, 9, 7}, {}}});
    const auto epochs = outcome_of(scenario).jobs[0].epochs;
    ASSERT_EQ(epochs.size(), 3U);
    EXPECT_EQ(epochs[1].requested, 4U);
    EXPECT_EQ(epochs[1].origin_samples, 2U);
}

TEST(Simulator, RefusesRecordedReadsThatDoNotFit) {
    const auto is_refused = [](RecordedReads reads, const char* contract, const char* policy) {
        Scenario scenario;
        scenario.cache.policy = policy;
        scenario.jobs[0].contract = contract;
        scenario.jobs[0].recorded = std::make_shared<RecordedReads>(std::move(reads));
        return !run(scenario).has_value();
    };
    EXPECT_FALSE(is_refused({{{1}, {1}, {1}}}, "exact", ""));
    EXPECT_TRUE(is_refused({{{1}, {1}}}, "exact", ""));
    EXPECT_TRUE(is_refused({{{1}, {1}, {20'000}}}, "exact", ""));
    EXPECT_TRUE(is_refused({{{1}, {1}, {1}}}, "windowed", ""));
    EXPECT_TRUE(is_refused({{{1}, {1}, {1}}}, "exact", "belady"));
}

}  // namespace
}  // namespace stoker::simulate
