#include "sidecar/simulate/job_run.h"

#include <gtest/gtest.h>

#include "sidecar/core/sampling/exact_sampler.h"

namespace stoker::simulate {
namespace {

using std::chrono::seconds;

// 100 samples in batches of 10, one second of compute each, on a node that keeps no sample.
struct World {
    World(Duration latency, std::uint32_t ahead, std::uint32_t samples = 100)
        : sizes(samples, 1),
          sampler({.count = samples, .seed = 1}),
          node({sizes, Bytes{}, Bytes{}, {latency, gib(1), 100}, nullptr, nullptr}),
          run(setting(ahead), node) {}

    JobRun::Setting setting(std::uint32_t ahead) {
        JobRun::Setting setting;
        scenario.batch = 10;
        scenario.epochs = 2;
        scenario.ahead = ahead;
        scenario.samples_per_second = 10;
        setting.scenario = &scenario;
        setting.sampler = &sampler;
        setting.samples = sizes.size();
        return setting;
    }

    JobFigures run_to_end() {
        while (const auto now = run.next_event()) {
            run.finish_batch(*now);
            EXPECT_TRUE(run.go_on(*now).has_value());
            for (const auto& reply : node.take_replies()) {
                EXPECT_EQ(JobRun::job_of(reply.connection), 0U);
                run.on_reply(reply, *now);
            }
        }
        EXPECT_TRUE(run.is_finished());
        return run.figures();
    }

    Scenario scenario;
    std::vector<std::uint64_t> sizes;
    sidecar::ExactSampler sampler;
    VirtualNode node;
    JobRun run;
};

double seconds_of(Duration time) {
    return std::chrono::duration<double>(time).count();
}

TEST(JobRun, WaitsForEachBatchWithoutLookahead) {
    World world{seconds{1}, 0};
    const auto figures = world.run_to_end();
    ASSERT_EQ(figures.epochs.size(), 2U);
    EXPECT_NEAR(seconds_of(figures.epochs[0].time), 20, 0.001);
    EXPECT_NEAR(seconds_of(figures.epochs[0].waited), 10, 0.001);
}

TEST(JobRun, HidesAFastOriginBehindCompute) {
    World world{seconds{2}, 2};
    const auto figures = world.run_to_end();
    EXPECT_NEAR(seconds_of(figures.epochs[0].time), 12, 0.001);
    EXPECT_NEAR(seconds_of(figures.epochs[0].waited), 2, 0.001) << "only before the first batch";
}

// A batch that no worker has read yet is requested only when the one before it is computed.
TEST(JobRun, BatchesQueuedForABusyWorkerAreNotFetchedAhead) {
    World world{seconds{1}, 2};
    world.scenario.read_ahead = 0;
    const auto figures = world.run_to_end();
    EXPECT_NEAR(seconds_of(figures.epochs[0].waited), 10, 0.001);
    EXPECT_EQ(figures.epochs[0].requested, 100U);
    EXPECT_EQ(figures.epochs[0].repeated, 0U);
}

TEST(JobRun, ReadsEachSampleOncePerEpochAtAnyDepth) {
    World world{seconds{1}, 50};
    for (const EpochFigures& epoch : world.run_to_end().epochs) {
        EXPECT_TRUE(epoch.complete);
        EXPECT_EQ(epoch.requested, 100U);
        EXPECT_EQ(epoch.distinct, 100U);
        EXPECT_EQ(epoch.repeated, 0U);
        EXPECT_EQ(epoch.origin_samples, 100U);
    }
}

TEST(JobRun, ReadsTheLastShortBatch) {
    World world{seconds{0}, 1, 95};
    EXPECT_EQ(world.run_to_end().epochs[1].requested, 95U);
}

}  // namespace
}  // namespace stoker::simulate
