#include "common/metrics/metrics.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, ExposesFamiliesSortedByNameWithHelpAndType) {
    Registry registry;
    registry.gauge("stoker_b", "Second.").set(1.5);
    registry.counter("stoker_a_total", "First.").add(3);
    registry.gauge("stoker_c", "Third.").set(7);
    EXPECT_EQ(
        registry.expose(),
        "# HELP stoker_a_total First.\n"
        "# TYPE stoker_a_total counter\n"
        "stoker_a_total 3\n"
        "# HELP stoker_b Second.\n"
        "# TYPE stoker_b gauge\n"
        "stoker_b 1.5\n"
        "# HELP stoker_c Third.\n"
        "# TYPE stoker_c gauge\n"
        "stoker_c 7\n");
}

TEST(Metrics, SortsSeriesByLabelValues) {
    Registry registry;
    auto& family = registry.counter_family("x_total", "X.", {"source", "code"});
    family.with({"peer", "200"})->add();
    family.with({"origin", "503"})->add(2);
    family.with({"origin", "200"})->add(4);
    EXPECT_EQ(
        registry.expose(),
        "# HELP x_total X.\n"
        "# TYPE x_total counter\n"
        "x_total{source=\"origin\",code=\"200\"} 4\n"
        "x_total{source=\"origin\",code=\"503\"} 2\n"
        "x_total{source=\"peer\",code=\"200\"} 1\n");
}

TEST(Metrics, EscapesHelpAndLabelValues) {
    Registry registry;
    registry.gauge_family("g", "a \"b\" \\ c\nd", {"key"}).with({"q\" b\\ n\n é"})->set(1);
    EXPECT_EQ(
        registry.expose(),
        "# HELP g a \"b\" \\\\ c\\nd\n"
        "# TYPE g gauge\n"
        "g{key=\"q\\\" b\\\\ n\\n é\"} 1\n");
}

TEST(Metrics, WritesNumbersInPrometheusFormat) {
    Registry registry;
    Gauge& gauge = registry.gauge("g", "G.");
    const std::vector<std::pair<double, std::string>> cases = {
        {0, "0"},
        {-2, "-2"},
        {0.1, "0.1"},
        {1'234'567'890'123, "1234567890123"},
        {9'007'199'254'740'992, "9007199254740992"},
        {std::numeric_limits<double>::infinity(), "+Inf"},
        {-std::numeric_limits<double>::infinity(), "-Inf"},
        {std::nan(""), "NaN"},
    };
    for (const auto& [value, want] : cases) {
        gauge.set(value);
        EXPECT_THAT(registry.expose(), HasSubstr("\ng " + want + "\n"));
    }
}

TEST(Metrics, HistogramBucketsAreCumulativeAndInclusive) {
    Registry registry;
    auto& family = registry.histogram_family("h_seconds", "H.", {"op"}, {0.1, 1});
    const auto histogram = family.with({"get"});
    for (const double value : {0.05, 0.1, 0.5, 3.0}) {
        histogram->observe(value);
    }
    EXPECT_EQ(
        registry.expose(),
        "# HELP h_seconds H.\n"
        "# TYPE h_seconds histogram\n"
        "h_seconds_bucket{op=\"get\",le=\"0.1\"} 2\n"
        "h_seconds_bucket{op=\"get\",le=\"1\"} 3\n"
        "h_seconds_bucket{op=\"get\",le=\"+Inf\"} 4\n"
        "h_seconds_sum{op=\"get\"} 3.65\n"
        "h_seconds_count{op=\"get\"} 4\n");
}

TEST(Metrics, ExponentialBoundsGrowByTheFactor) {
    EXPECT_THAT(exponential_bounds(1, 4, 4), ElementsAre(1, 4, 16, 64));
    EXPECT_THAT(exponential_bounds(1, 2, 0), ElementsAre());
}

TEST(Metrics, RemovedSeriesDisappearButPointersStayValid) {
    Registry registry;
    auto& family = registry.gauge_family("g", "G.", {"job"});
    const auto ended = family.with({"a"});
    family.with({"b"})->set(2);
    family.remove({"a"});
    family.remove({"never there"});
    ended->set(5);
    EXPECT_THAT(registry.expose(), Not(HasSubstr("job=\"a\"")));
    EXPECT_THAT(registry.expose(), HasSubstr("g{job=\"b\"} 2\n"));
    EXPECT_EQ(family.with({"a"})->value(), 0) << "a new series starts from zero";
}

TEST(Metrics, CountsAdditionsOfEveryThread) {
    Registry registry;
    Counter& counter = registry.counter("c_total", "C.");
    auto& family = registry.histogram_family("h", "H.", {"thread"}, {0.5});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 10'000; ++i) {
                counter.add();
                family.with({std::to_string(t % 2)})->observe(1);
                if (i % 1000 == 0) {
                    static_cast<void>(registry.expose());
                }
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(counter.value(), 40'000);
    EXPECT_THAT(family.with({"0"})->counts(), ElementsAre(0, 20'000));
}

TEST(MetricsDeathTest, InvalidNamesAbort) {
    Registry registry;
    registry.counter("taken_total", "T.");
    EXPECT_DEATH(registry.counter("taken_total", "Again."), "taken_total");
    EXPECT_DEATH(registry.counter("no spaces", "N."), "no spaces");
    EXPECT_DEATH(registry.counter("1st", "N."), "1st");
    EXPECT_DEATH(registry.histogram_family("h", "H.", {"le"}, {1}), "le");
    EXPECT_DEATH(registry.counter_family("f", "F.", {"a"}).with({}), "f");
    EXPECT_DEATH(registry.histogram("h", "H.", {2, 1}), "ascend");
}

}  // namespace
}  // namespace stoker::metrics
