#include "operator/controllers/status_writer.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "operator/api/dataset.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;

struct StatusWriterTest : ::testing::Test {
    // The dataset with one more cached byte: progress only.
    static Dataset grown(Dataset dataset) {
        ++dataset.status.cached_bytes;
        return dataset;
    }

    static Dataset judged(Dataset dataset, const std::string& reason) {
        set_condition(
            dataset.status.conditions,
            {"Ready", ConditionStatus::kTrue, 1, WallTime{}, reason, "message"});
        return dataset;
    }

    StatusOutcome write(const Dataset& before, const Dataset& after, bool urgent = false) {
        return writer.write(before, after, urgent)->outcome;
    }

    test::ControllerBench bench;
    StatusWriter writer{bench.client, kinds::kDatasets, bench.clock};
    const Dataset dataset = make_digits();
};

TEST_F(StatusWriterTest, WritesOnlyChangedStatuses) {
    EXPECT_EQ(write(dataset, dataset), StatusOutcome::kUnchanged);
    EXPECT_TRUE(bench.client.calls.empty());
    EXPECT_EQ(write(dataset, grown(dataset)), StatusOutcome::kWritten);
    ASSERT_EQ(bench.client.calls.size(), 1U);
    EXPECT_EQ(bench.client.calls[0].verb, "apply_status");
    EXPECT_NE(bench.client.calls[0].body.find("\"uid\":\"d1\""), std::string::npos);
}

TEST_F(StatusWriterTest, WritesOnlyOverTheVersionThatItHasRead) {
    Dataset read = dataset;
    read.meta.resource_version = "77";
    ASSERT_EQ(write(read, grown(read)), StatusOutcome::kWritten);
    EXPECT_NE(bench.client.calls[0].body.find("\"resourceVersion\":\"77\""), std::string::npos);
}

TEST_F(StatusWriterTest, PostponesProgressButNotConditions) {
    const Dataset first = grown(dataset);
    ASSERT_EQ(write(dataset, first), StatusOutcome::kWritten);
    bench.clock.advance(seconds{2});
    const Result<StatusWrite> later = writer.write(first, grown(first), false);
    EXPECT_EQ(later->outcome, StatusOutcome::kPostponed);
    EXPECT_EQ(later->again_after, seconds{3});
    EXPECT_EQ(write(first, judged(first, "Listed")), StatusOutcome::kWritten);
    EXPECT_EQ(write(first, grown(first), true), StatusOutcome::kWritten);
    bench.clock.advance(seconds{5});
    EXPECT_EQ(write(first, grown(first)), StatusOutcome::kWritten);
}

TEST_F(StatusWriterTest, DeletedObjectIsNoError) {
    bench.client.failure = Error{ErrorCode::kNotFound, "gone"};
    EXPECT_EQ(write(dataset, grown(dataset)), StatusOutcome::kGone);
    bench.client.failure = Error{ErrorCode::kConflict, "another uid"};
    EXPECT_EQ(write(dataset, grown(dataset)), StatusOutcome::kGone);
    bench.client.failure = Error{ErrorCode::kUnavailable, "away"};
    EXPECT_FALSE(writer.write(dataset, grown(dataset), false));
}

TEST_F(StatusWriterTest, KnowsWhetherTheCacheShowsItsOwnWrite) {
    auto& informer = bench.cache.datasets();
    bench.put(informer, dataset);
    EXPECT_TRUE(writer.has_seen_own_write(informer.store(), dataset.meta.key()));
    ASSERT_EQ(write(dataset, grown(dataset)), StatusOutcome::kWritten);
    EXPECT_FALSE(writer.has_seen_own_write(informer.store(), dataset.meta.key()));
    bench.catch_up(informer);
    EXPECT_TRUE(writer.has_seen_own_write(informer.store(), dataset.meta.key()));
}

TEST_F(StatusWriterTest, StopsWaitingForAStaleCache) {
    bench.put(bench.cache.datasets(), dataset);
    ASSERT_EQ(write(dataset, grown(dataset)), StatusOutcome::kWritten);
    bench.clock.advance(seconds{31});
    EXPECT_TRUE(writer.has_seen_own_write(bench.cache.datasets().store(), dataset.meta.key()));
}

TEST_F(StatusWriterTest, PostponesConditionsBeyondTheWriteRate) {
    const auto named = [this](int number) {
        Dataset other = dataset;
        other.meta.name = "d" + std::to_string(number);
        return other;
    };
    int written = 0;
    Duration longest{};
    for (int i = 0; i < 400; ++i) {
        const auto result = writer.write(named(i), judged(named(i), "Listed"), false);
        written += result->outcome == StatusOutcome::kWritten ? 1 : 0;
        longest = std::max(longest, result->again_after.value_or(Duration{}));
    }
    EXPECT_EQ(written, 100);
    EXPECT_EQ(longest, seconds{10});  // 300 at 30 a second
    EXPECT_EQ(write(named(399), judged(named(399), "Listed"), true), StatusOutcome::kWritten);
    bench.clock.advance(longest);
    for (int i = 100; i < 399; ++i) {
        EXPECT_EQ(write(named(i), judged(named(i), "Listed")), StatusOutcome::kWritten) << i;
    }
}

TEST_F(StatusWriterTest, ASecondWriteOfAPostponedStatusKeepsItsTime) {
    for (int i = 0; i < 100; ++i) {
        Dataset other = dataset;
        other.meta.name = "d" + std::to_string(i);
        ASSERT_EQ(write(other, judged(other, "Listed")), StatusOutcome::kWritten);
    }
    const auto first = writer.write(dataset, judged(dataset, "Listed"), false);
    ASSERT_EQ(first->outcome, StatusOutcome::kPostponed);
    const auto again = writer.write(dataset, judged(dataset, "Listed"), false);
    EXPECT_EQ(again->again_after, first->again_after);
}

}  // namespace
}  // namespace stoker::control
