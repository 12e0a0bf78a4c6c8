#include "operator/runtime/event_series.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours{1}};
constexpr WallTime kWall{seconds{1'767'225'600}};

EventNote note(const std::string& reason = "Started", const std::string& uid = "u1") {
    EventNote event;
    event.regarding = {"stoker.dev/v1alpha1", "TrainingJob", {"demo", "mnist"}, uid, "7"};
    event.reason = reason;
    event.action = "Reconcile";
    event.note = "attempt 1 has started";
    return event;
}

TEST(EventSeries, CreatesTheFirstAndCountsTheRest) {
    EventSeries series;
    const auto first = series.add(note(), kStart, kWall);
    ASSERT_TRUE(first);
    const EventWrite& create = *first;
    EXPECT_TRUE(create.is_new());
    EXPECT_EQ(create.key.ns, "demo");
    EXPECT_EQ(create.key.name, fmt::format("mnist.{:x}", kWall.time_since_epoch().count()));
    const auto second = series.add(note(), kStart + minutes{1}, kWall + minutes{1});
    ASSERT_TRUE(second);
    EXPECT_EQ(second->count, 2U);
    EXPECT_EQ(second->key, create.key);
    EXPECT_FALSE(series.add(note(), kStart + minutes{2}, kWall + minutes{2}));
}

TEST(EventSeries, WritesTheCountWhenTheSeriesEnds) {
    EventSeries series;
    for (int i = 0; i < 5; ++i) {
        series.add(note(), kStart + minutes{i}, kWall + minutes{i});
    }
    EXPECT_TRUE(series.flush(kStart + minutes{9}).empty());
    const auto writes = series.flush(kStart + minutes{10});
    ASSERT_EQ(writes.size(), 1U);
    EXPECT_EQ(writes[0].count, 5U);
    EXPECT_EQ(writes[0].last_seen, kWall + minutes{4});
    EXPECT_TRUE(series.flush(kStart + minutes{20}).empty());
    const auto anew = series.add(note(), kStart + minutes{21}, kWall + minutes{21});
    EXPECT_TRUE(anew->is_new());
}

TEST(EventSeries, WritesALongSeriesEveryHalfHour) {
    EventSeries series;
    int writes = 0;
    for (int minute = 0; minute < 120; ++minute) {
        series.add(note(), kStart + minutes{minute}, kWall + minutes{minute});
        writes += static_cast<int>(series.flush(kStart + minutes{minute}).size());
    }
    EXPECT_EQ(writes, 3);
}

TEST(EventSeries, SeparatesDifferentEvents) {
    EventSeries series;
    EventNote warning = note();
    warning.type = EventType::kWarning;
    EventNote newer = note();
    newer.regarding.resource_version = "8";
    EXPECT_TRUE(series.add(note(), kStart, kWall)->is_new());
    EXPECT_TRUE(series.add(note("Ended"), kStart, kWall)->is_new());
    EXPECT_TRUE(series.add(warning, kStart, kWall)->is_new());
    EXPECT_FALSE(series.add(newer, kStart, kWall)->is_new())
        << "the same thing at another version is the same thing";
}

TEST(EventSeries, LimitsAnObjectToTwentyFiveEvents) {
    EventSeries series;
    int written = 0;
    for (int i = 0; i < 1000; ++i) {
        written += series.add(note(fmt::format("R{}", i)), kStart, kWall) ? 1 : 0;
    }
    EXPECT_EQ(written, 25);
    EXPECT_EQ(series.dropped(), 975U);
    EXPECT_TRUE(series.add(note("Other", "u2"), kStart, kWall)) << "others are not punished";
    EXPECT_TRUE(series.add(note("Later"), kStart + minutes{5}, kWall));
    EXPECT_FALSE(series.add(note("Again"), kStart + minutes{5}, kWall));
}

TEST(EventSeries, ForgetsTheOldestBeyondItsLimit) {
    EventSeriesLimits limits;
    limits.series_max = 2;
    EventSeries series(limits);
    series.add(note("A"), kStart, kWall);
    series.add(note("B"), kStart + seconds{1}, kWall);
    series.add(note("C"), kStart + seconds{2}, kWall);
    EXPECT_TRUE(series.add(note("A"), kStart + seconds{3}, kWall)->is_new());
    EXPECT_FALSE(series.add(note("C"), kStart + seconds{4}, kWall)->is_new());
}

TEST(EventSeries, PutsEventsOfClusterScopedObjectsIntoDefault) {
    EventSeries series;
    EventNote about_pool = note();
    about_pool.regarding.key = {"", "fast"};
    EXPECT_EQ(series.add(about_pool, kStart, kWall)->key.ns, "default");
}

}  // namespace
}  // namespace stoker::control
