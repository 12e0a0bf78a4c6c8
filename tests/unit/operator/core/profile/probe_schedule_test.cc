#include "operator/core/profile/probe_schedule.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::seconds;

struct Bench {
    ProbeSchedule schedule{100};
    std::vector<SidecarReport> ranks{2};
    ProbeWish wish{true, 20, seconds{120}};
    bool is_profiled = true;
    std::uint64_t regime = 0;
    TimePoint now{seconds{1000}};

    ProbeStep step() { return schedule.step({wish, is_profiled, regime, 2, ranks}, now); }

    void answer(std::size_t rank, std::uint64_t id, Duration bypassed, Duration cached) {
        ranks[rank].trainer.probe = {id, {20, bypassed, gib(1)}, {20, cached, gib(1)}};
    }
};

TEST(ProbeSchedule, RequestsOneProbeAndWaitsForTheResultsOfAllRanks) {
    Bench bench;
    const ProbeStep first = bench.step();
    ASSERT_TRUE(first.ask);
    EXPECT_EQ(*first.ask, (Probe{100, 20}));
    EXPECT_EQ(bench.step().ask, first.ask) << "those that attach later are asked, too";
    bench.answer(0, 100, seconds{30}, seconds{10});
    EXPECT_FALSE(bench.step().benefit) << "one rank says nothing";
    bench.answer(1, 100, seconds{34}, seconds{10});
    const ProbeStep done = bench.step();
    ASSERT_TRUE(done.benefit);
    EXPECT_DOUBLE_EQ(*done.benefit, 3.4);
    EXPECT_FALSE(done.ask);
    bench.now += std::chrono::hours{24};
    EXPECT_FALSE(bench.step().ask) << "measured";
    bench.regime = 1;
    EXPECT_EQ(bench.step().ask->id, 101U) << "and again when things changed";
}

TEST(ProbeSchedule, RequestsAProbeOnlyIfWantedAndProfiled) {
    Bench bench;
    bench.is_profiled = false;
    EXPECT_FALSE(bench.step().ask);
    bench.is_profiled = true;
    bench.wish.is_wanted = false;
    EXPECT_FALSE(bench.step().ask);
}

TEST(ProbeSchedule, GivesUpAndRetriesLater) {
    Bench bench;
    ASSERT_TRUE(bench.step().ask);
    bench.now += seconds{121};
    EXPECT_FALSE(bench.step().ask);
    bench.now += seconds{60};
    EXPECT_FALSE(bench.step().ask);
    bench.now += ProbeSchedule::kAgainAfter;
    EXPECT_EQ(bench.step().ask->id, 101U);
}

TEST(ProbeSchedule, IgnoresAnswersToOtherOrIncompleteProbes) {
    Bench bench;
    ASSERT_TRUE(bench.step().ask);
    bench.answer(0, 99, seconds{30}, seconds{10});
    bench.answer(1, 99, seconds{30}, seconds{10});
    EXPECT_FALSE(bench.step().benefit);
    bench.answer(0, 100, seconds{30}, seconds{10});
    bench.answer(1, 100, seconds{30}, seconds{10});
    bench.ranks[1].trainer.probe.cached.batches = 19;
    EXPECT_FALSE(bench.step().benefit);
    bench.ranks[1].trainer.probe.cached = {20, Duration{}, gib(1)};
    EXPECT_FALSE(bench.step().benefit) << "no time at all cannot be";
    bench.ranks[1].trainer.probe.cached = {20, seconds{10}, Bytes{}};
    EXPECT_FALSE(bench.step().benefit) << "nor can no bytes";
}

TEST(ProbeSchedule, CancelsAnOpenProbeIfTheProfilerStartsAnew) {
    Bench bench;
    ASSERT_TRUE(bench.step().ask);
    bench.answer(0, 100, seconds{30}, seconds{10});
    bench.answer(1, 100, seconds{30}, seconds{10});
    bench.regime = 1;
    const ProbeStep next = bench.step();
    EXPECT_FALSE(next.benefit);
    EXPECT_EQ(next.ask->id, 101U);
}

}  // namespace
}  // namespace stoker::control
