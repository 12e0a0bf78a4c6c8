#include "operator/core/profile/profiler.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/unit/operator/core/profile/training_world.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr double kWindow = 10;  // seconds between two reports, the profiler's measuring window

// Returns how often the profile changed.
int observe(JobProfiler& profiler, TrainingWorld& world, int windows) {
    int changes = 0;
    for (int i = 0; i < windows; ++i) {
        world.run(kWindow);
        changes += profiler.observe(world.input()) ? 1 : 0;
    }
    return changes;
}

TEST(JobProfiler, PublishesNothingBeforeThreeMeasuringWindows) {
    JobProfiler profiler;
    TrainingWorld world;
    EXPECT_EQ(observe(profiler, world, 3), 0) << "the first report only begins a window";
    EXPECT_EQ(profiler.profile(), JobProfile{});
    EXPECT_EQ(observe(profiler, world, 1), 1);
    EXPECT_EQ(profiler.profile().window_count, 3U);
}

TEST(JobProfiler, FindsTheRatesOfTheSimulatedJob) {
    struct Case {
        std::string name;
        double ingest;
        double origin;
        double miss;
        ProfileVerdict verdict;
        double wait_share;
    };

    const std::vector<Case> cases = {
        {"everything from a slow origin", 400e6, 100e6, 1, ProfileVerdict::kDataBound, 0.75},
        {"half cached, still waiting", 400e6, 100e6, 0.5, ProfileVerdict::kDataBound, 0.5},
        {"an origin that keeps up", 100e6, 400e6, 1, ProfileVerdict::kComputeBound, 0},
        {"hardly waiting", 100e6, 94e6, 1, ProfileVerdict::kDataBound, 0.06},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        JobProfiler profiler;
        TrainingWorld world;
        world.ingest = c.ingest;
        world.origin = c.origin;
        world.miss = c.miss;
        observe(profiler, world, 12);
        const JobProfile& profile = profiler.profile();
        EXPECT_EQ(profile.verdict, c.verdict);
        EXPECT_NEAR(profile.ingest_rate, c.ingest, c.ingest * 0.01);
        EXPECT_NEAR(profile.wait_share, c.wait_share, 0.01);
        EXPECT_NEAR(profile.miss_share, c.miss, 0.01);
        EXPECT_NEAR(profile.origin_latency, 0.02, 0.001);
        EXPECT_NEAR(profile.sample_bytes, 100e3, 1e3);
        EXPECT_DOUBLE_EQ(profile.confidence, 1);
        if (c.wait_share > 0.05) {
            EXPECT_NEAR(profile.origin_rate, c.origin, c.origin * 0.01);
            EXPECT_FALSE(profile.origin_rate_is_bound);
        }
    }
}

TEST(JobProfiler, CachedBytesDoNotMakeAJobComputeBound) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 6);
    ASSERT_EQ(profiler.profile().verdict, ProfileVerdict::kDataBound);
    world.granted = gib(100);
    world.miss = 0;
    observe(profiler, world, 20);
    EXPECT_EQ(profiler.profile().verdict, ProfileVerdict::kDataBound);
    EXPECT_NEAR(profiler.profile().wait_share, 0, 0.01);
    EXPECT_NEAR(profiler.profile().origin_rate, 100e6, 1e6) << "as it was before";
}

// The wait has another cause, for example decoding: no cache makes the trainer wait less.
TEST(JobProfiler, OtherWaitsDoNotCountAsWaitsForTheOrigin) {
    JobProfiler profiler;
    TrainingWorld world;
    world.miss = 0;
    for (int i = 0; i < 12; ++i) {
        world.run(kWindow);
        for (SidecarReport& report : world.ranks) {
            report.trainer.wait += std::chrono::seconds{10};
        }
        profiler.observe(world.input());
    }
    EXPECT_NEAR(profiler.profile().wait_share, 0.5, 0.01);
    EXPECT_NEAR(profiler.profile().ingest_rate, profiler.profile().read_rate, 1);
}

TEST(JobProfiler, GivesNoVerdictIfAllReadsHitFromTheStart) {
    JobProfiler profiler;
    TrainingWorld world;
    world.miss = 0;
    observe(profiler, world, 12);
    EXPECT_EQ(profiler.profile().verdict, ProfileVerdict::kUnknown);
    EXPECT_GT(profiler.profile().ingest_rate, 0);
    EXPECT_EQ(profiler.profile().origin_rate, 0);
    // One percent of the reads goes to the origin: too few to show how much the origin could give.
    world.miss = 0.01;
    observe(profiler, world, 12);
    EXPECT_TRUE(profiler.profile().origin_rate_is_bound);
    EXPECT_EQ(profiler.profile().verdict, ProfileVerdict::kUnknown);
}

TEST(JobProfiler, FollowsASlowerOrigin) {
    JobProfiler profiler;
    TrainingWorld world;
    world.ingest = 100e6;
    world.origin = 400e6;
    observe(profiler, world, 12);
    ASSERT_EQ(profiler.profile().verdict, ProfileVerdict::kComputeBound);
    world.origin = 50e6;
    observe(profiler, world, 12);
    EXPECT_EQ(profiler.profile().verdict, ProfileVerdict::kDataBound);
    EXPECT_NEAR(profiler.profile().origin_rate, 50e6, 1e6);
}

TEST(JobProfiler, FollowsAFasterTrainer) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 12);
    world.ingest = 800e6;
    EXPECT_GE(observe(profiler, world, 4), 1);
    EXPECT_NEAR(profiler.profile().ingest_rate, 800e6, 8e6) << "without nine windows' delay";
}

TEST(JobProfiler, ResetsWhenRanksOrTheGrantChange) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 12);
    EXPECT_EQ(profiler.regime(), 0U);
    world.granted = gib(1);
    observe(profiler, world, 1);
    EXPECT_EQ(profiler.regime(), 1U);
    world.granted = mib(1100);
    observe(profiler, world, 1);
    EXPECT_EQ(profiler.regime(), 1U) << "a tenth more is the same grant";
    world.rank_count = 3;
    observe(profiler, world, 1);
    EXPECT_EQ(profiler.regime(), 2U);
    EXPECT_NE(profiler.profile(), JobProfile{}) << "the last word stands until there is a new one";
}

// The ingest rate does not depend on the grant; if each new grant lowered the confidence in it, the
// planner would move bytes forever.
TEST(JobProfiler, GrantChangeKeepsTheConfidence) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 12);
    ASSERT_DOUBLE_EQ(profiler.profile().confidence, 1);
    world.granted = gib(1);
    world.miss = 0.5;
    observe(profiler, world, 4);
    EXPECT_DOUBLE_EQ(profiler.profile().confidence, 1);
    world.rank_count = 3;
    observe(profiler, world, 5);
    EXPECT_LT(profiler.profile().confidence, 0.7) << "other ranks are another job";
}

TEST(JobProfiler, WaitsForEveryRank) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 6);
    const JobProfile before = profiler.profile();
    std::vector<SidecarReport> lost = world.ranks;
    lost.pop_back();
    for (int i = 0; i < 20; ++i) {
        world.run(kWindow);
        EXPECT_FALSE(profiler.observe({lost, lost, 2, {}}));
    }
    EXPECT_EQ(profiler.profile(), before);
}

TEST(JobProfiler, HandlesASidecarThatCountsFromZero) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 12);
    const JobProfile before = profiler.profile();
    world.ranks.clear();
    EXPECT_EQ(observe(profiler, world, 6), 0);
    EXPECT_EQ(profiler.profile().ingest_rate, before.ingest_rate);
}

TEST(JobProfiler, RefusesOutOfRangeRates) {
    JobProfiler profiler;
    TrainingWorld world;
    world.ingest = world.origin = 1e14;
    EXPECT_EQ(observe(profiler, world, 6), 0);
    EXPECT_EQ(profiler.refused(), 5U);
    TrainingWorld busy;
    JobProfiler other;
    for (int i = 0; i < 6; ++i) {
        busy.run(kWindow);
        busy.ranks[0].trainer.wait += std::chrono::hours{100};
        EXPECT_FALSE(other.observe(busy.input()));
    }
    EXPECT_EQ(other.refused(), 5U);
    EXPECT_EQ(other.profile(), JobProfile{});
}

TEST(JobProfiler, IgnoresWindowsWithoutReads) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 6);
    const JobProfile before = profiler.profile();
    for (int i = 0; i < 20; ++i) {
        world.seconds += kWindow;  // validation: no reads, no counts
        for (SidecarReport& report : world.ranks) {
            report.received_at += std::chrono::seconds{10};
        }
        EXPECT_FALSE(profiler.observe(world.input()));
    }
    EXPECT_EQ(profiler.profile(), before);
}

TEST(JobProfiler, KeepsAMeasurementUntilTheRegimeChanges) {
    JobProfiler profiler;
    TrainingWorld world;
    EXPECT_FALSE(profiler.take_measured(3)) << "of a job of which nothing is known";
    observe(profiler, world, 6);
    for (const double wrong :
         {std::numeric_limits<double>::quiet_NaN(),
          std::numeric_limits<double>::infinity(),
          -1.0,
          0.0,
          1e9}) {
        EXPECT_FALSE(profiler.take_measured(wrong)) << wrong;
    }
    EXPECT_EQ(profiler.profile().method, ProfileMethod::kPredicted);
    EXPECT_TRUE(profiler.take_measured(3.5));
    observe(profiler, world, 6);
    EXPECT_EQ(profiler.profile().method, ProfileMethod::kMeasured);
    EXPECT_EQ(profiler.profile().measured_benefit, 3.5);
    world.ingest = 1200e6;
    observe(profiler, world, 6);
    EXPECT_EQ(profiler.profile().method, ProfileMethod::kPredicted);
}

TEST(JobProfiler, PublishesAgainAfterNineMeasuringWindows) {
    JobProfiler profiler;
    TrainingWorld world;
    world.ingest = 112e6;
    world.origin = 20e6;
    EXPECT_EQ(observe(profiler, world, 4), 1);
    EXPECT_NEAR(profiler.profile().ingest_rate, 112e6, 1e6);
    world.ingest = 100e6;
    EXPECT_EQ(observe(profiler, world, 5), 0) << "near enough";
    EXPECT_NEAR(profiler.profile().ingest_rate, 112e6, 1e6);
    EXPECT_EQ(observe(profiler, world, 1), 1) << "nine windows";
    EXPECT_NEAR(profiler.profile().ingest_rate, 104e6, 1e6) << "three of 112, six of 100";
    world.ingest = 90e6;
    EXPECT_EQ(observe(profiler, world, 20), 0);
    EXPECT_NEAR(profiler.profile().ingest_rate, 104e6, 1e6);
}

// A measuring window of 10 s contains seven or eight steps of 1.4 s, so rates differ by 12 %.
TEST(JobProfiler, LongStepsDoNotRaiseTheRate) {
    for (const double step : {0.3, 0.9, 1.4, 1.7, 2.4}) {
        SCOPED_TRACE(step);
        JobProfiler profiler;
        TrainingWorld world;
        world.miss = 0;
        world.ingest = 10e6;
        double ended = 0;  // end of the last step
        const auto run = [&](double until) {
            const double now = std::floor(until / step) * step;
            world.run(now - ended);
            world.report_at(until);
            ended = now;
        };
        for (int window = 1; window <= 10; ++window) {
            run(kWindow * window);
            profiler.observe(world.input());
            if (window == 4) {
                EXPECT_NEAR(profiler.profile().ingest_rate, 10e6, 10e6 * step / 30)
                    << "a first word";
            }
        }
        EXPECT_NEAR(profiler.profile().ingest_rate, 10e6, 10e6 * step / 90);
    }
}

// Workers fill their queues before the first step: here with three seconds' worth of reads.
TEST(JobProfiler, IgnoresPrefetchBeforeTheFirstStep) {
    JobProfiler profiler;
    TrainingWorld world;
    world.miss = 0;
    world.run(0);
    profiler.observe(world.input());
    world.run(3);
    for (SidecarReport& report : world.ranks) {
        report.trainer.compute = Duration::zero();
    }
    world.run(kWindow);
    world.report_at(kWindow);
    profiler.observe(world.input());
    observe(profiler, world, 10);
    EXPECT_EQ(profiler.profile().window_count, 9U);
    EXPECT_NEAR(profiler.profile().ingest_rate, 400e6, 1e6);
}

TEST(JobProfiler, ValidationPassesDoNotLowerTheIngestRate) {
    JobProfiler profiler;
    TrainingWorld world;
    world.miss = 0;
    for (int window = 0; window <= 9; ++window) {
        const double validation = window % 4 == 3 ? 6 : 0;
        world.run(kWindow - validation);
        world.report_at(kWindow * (window + 1));
        profiler.observe(world.input());
    }
    EXPECT_NEAR(profiler.profile().ingest_rate, 400e6, 4e6);
}

TEST(JobProfiler, GrantChangeKeepsTheIngestRate) {
    JobProfiler profiler;
    TrainingWorld world;
    observe(profiler, world, 7);
    world.granted = gib(1);
    world.miss = 0.5;
    world.ingest = 430e6;
    observe(profiler, world, 4);
    // The last nine windows count by their computing time: in six the job reads 100e6 bytes/s and
    // could read 400e6, in three it reads 200e6 and could read 430e6.
    const double computed = 6 * 100.0 / 400 + 3 * 200.0 / 430;
    EXPECT_NEAR(profiler.profile().ingest_rate, 1200e6 / computed, 1e6);
}

TEST(JobProfilerProperty, NoiseDoesNotChangeAPublishedProfile) {
    Prng prng(test_seed());
    for (int round = 0; round < 200; ++round) {
        TrainingWorld world;
        world.ingest = 1e8 * (1 + prng.unit() * 9);
        // The origin is clearly slower or clearly faster than the job: if they were about equal,
        // noise could change the verdict (DataBound or ComputeBound).
        world.origin = world.ingest * (round % 2 == 0 ? 0.2 + prng.unit() * 0.5 : 1.4);
        JobProfiler profiler;
        int changes = 0;
        ProfileVerdict told = ProfileVerdict::kUnknown;
        for (int i = 0; i < 60; ++i) {
            world.run(kWindow, 0.93 + prng.unit() * 0.14, 0.93 + prng.unit() * 0.14);
            changes += profiler.observe(world.input()) ? 1 : 0;
            if (told != ProfileVerdict::kUnknown) {
                EXPECT_EQ(profiler.profile().verdict, told) << "round " << round;
            }
            told = profiler.profile().verdict;
        }
        EXPECT_LE(changes, 3) << "round " << round;
        EXPECT_GE(changes, 1) << "round " << round;
        EXPECT_GT(profiler.profile().confidence, 0.5);
    }
}

TEST(JobProfilerProperty, NoReportMakesTheProfileNaN) {
    Prng prng(test_seed());
    for (int round = 0; round < 300; ++round) {
        JobProfiler profiler;
        TrainingWorld world;
        for (int i = 0; i < 30; ++i) {
            world.ingest = std::pow(10, prng.unit() * 14);
            world.origin = std::pow(10, prng.unit() * 14);
            world.miss = prng.unit() * 3 - 1;
            world.granted = Bytes{prng()};
            world.run(prng.unit() * 30, prng.unit() * 3, prng.unit() * 3);
            if (prng.below(5) == 0) {
                world.ranks[prng.below(world.ranks.size())] = SidecarReport{};
            }
            profiler.observe(world.input());
            const JobProfile& p = profiler.profile();
            for (const double number :
                 {p.ingest_rate,
                  p.read_rate,
                  p.wait_share,
                  p.origin_rate,
                  p.origin_latency,
                  p.miss_share,
                  p.sample_bytes,
                  p.confidence}) {
                ASSERT_TRUE(std::isfinite(number) && number >= 0);
            }
            ASSERT_LE(p.wait_share, 1);
            ASSERT_LE(p.confidence, 1);
        }
    }
}

}  // namespace
}  // namespace stoker::control
