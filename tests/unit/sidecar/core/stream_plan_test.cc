#include "sidecar/core/stream_plan.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

StreamPlan plan_of(std::vector<SampleIndex> samples, std::uint64_t start = 0) {
    return StreamPlan::make(1, std::move(samples), start, 10).value();
}

TEST(StreamPlan, FrontierIsTheLowestUnreadPosition) {
    StreamPlan plan = plan_of({4, 2, 9});
    EXPECT_TRUE(plan.read(2));
    EXPECT_EQ(plan.frontier(), 0U);
    EXPECT_TRUE(plan.read(4));
    EXPECT_EQ(plan.frontier(), 2U);
    EXPECT_TRUE(plan.read(9));
    EXPECT_EQ(plan.frontier(), plan.length());
}

TEST(StreamPlan, ReadsRepeatedSamplesOnceForEachOccurrence) {
    StreamPlan plan = plan_of({3, 5, 3});
    EXPECT_EQ(plan.next_position(3), 0U);
    EXPECT_TRUE(plan.read(3));
    EXPECT_EQ(plan.next_position(3), 2U);
    EXPECT_TRUE(plan.read(3));
    EXPECT_FALSE(plan.read(3));
    EXPECT_EQ(plan.next_position(3), std::nullopt);
    EXPECT_EQ(plan.frontier(), 1U);
}

// Compares with a linear search, with and without repeated samples.
TEST(StreamPlan, FindsTheFirstUnreadPosition) {
    Prng luck{test::seed()};
    for (int round = 0; round < 200; ++round) {
        std::vector<SampleIndex> samples{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        for (std::size_t i = samples.size(); i > 1; --i) {
            std::swap(samples[i - 1], samples[luck.below(i)]);
        }
        if (round % 2 == 0) {
            samples[luck.below(10)] = samples[luck.below(10)];
        }
        StreamPlan plan = plan_of(samples);
        std::vector<bool> read(10);
        for (int step = 0; step < 12; ++step) {
            const auto sample = static_cast<SampleIndex>(luck.below(10));
            std::optional<std::uint32_t> expected;
            for (std::uint32_t position = 10; position-- > 0;) {
                expected = samples[position] == sample && !read[position] ? position : expected;
            }
            ASSERT_EQ(plan.next_position(sample), expected);
            ASSERT_EQ(plan.read(sample), expected.has_value());
            if (expected) {
                read[*expected] = true;
            }
        }
    }
}

TEST(StreamPlan, RejectsReadsOfForeignSamples) {
    StreamPlan plan = plan_of({1});
    EXPECT_FALSE(plan.read(2));
    EXPECT_FALSE(plan.is_read(0));
}

TEST(StreamPlan, CountsPositionsBeforeTheStartAsRead) {
    StreamPlan plan = plan_of({7, 8, 7}, 1);
    EXPECT_EQ(plan.frontier(), 1U);
    EXPECT_EQ(plan.next_position(7), 2U);
    EXPECT_EQ(plan.next_position(8), 1U);
}

TEST(StreamPlan, MayBeEmpty) {
    const StreamPlan plan = plan_of({});
    EXPECT_EQ(plan.length(), 0U);
    EXPECT_EQ(plan.next_position(0), std::nullopt);
}

TEST(StreamPlan, NextEpochPositionsCannotBeRead) {
    StreamPlan plan = StreamPlan::make(1, {4, 2, 2, 9}, 0, 10, 2).value();
    EXPECT_EQ(plan.length(), 2U);
    EXPECT_EQ(plan.horizon(), 4U);
    EXPECT_TRUE(plan.read(2));
    EXPECT_EQ(plan.next_position(2), 2U) << "it comes again";
    EXPECT_FALSE(plan.read(2));
    EXPECT_FALSE(plan.read(9));
    EXPECT_TRUE(plan.read(4));
    EXPECT_EQ(plan.frontier(), plan.length());
    EXPECT_FALSE(plan.is_read(2));
    EXPECT_FALSE(plan.is_read(3));
}

TEST(StreamPlan, CountsForeseenSamplesOfTheNextPlan) {
    const StreamPlan plan = StreamPlan::make(1, {4, 2, 7, 8, 9}, 0, 10, 3).value();
    EXPECT_EQ(plan.foresaw(plan_of({7, 8, 9, 4})), 3U);
    EXPECT_EQ(plan.foresaw(plan_of({7, 8, 4, 9})), 2U);
    EXPECT_EQ(plan.foresaw(plan_of({7})), 1U);
    EXPECT_EQ(plan.foresaw(plan_of({4, 2})), 0U);
    EXPECT_EQ(plan_of({4, 2}).foresaw(plan), 0U);
}

TEST(StreamPlan, StartMustLieInTheEpoch) {
    EXPECT_TRUE(StreamPlan::make(0, {1, 2}, 1, 10, 1).has_value());
    EXPECT_EQ(StreamPlan::make(0, {1, 2}, 2, 10, 1).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(StreamPlan::make(0, {1, 2}, 0, 10, 3).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(StreamPlan::make(0, {1, 10}, 0, 10, 1).error().code, ErrorCode::kInvalidArgument);
}

TEST(StreamPlan, RejectsForeignSamplesAndAStartPastTheEnd) {
    EXPECT_EQ(StreamPlan::make(0, {10}, 0, 10).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(StreamPlan::make(0, {1}, 2, 10).error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(StreamPlan::make(0, {1}, 1, 10).has_value());
}

// Compares the plan with a model, a list of positions; also plans that have every sample once.
TEST(StreamPlan, AnExtensionReplacesTheEndOfThePlan) {
    Prng luck{test::seed()};
    for (int round = 0; round < 300; ++round) {
        std::vector<SampleIndex> samples{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        if (round % 2 == 0) {
            samples.resize(luck.below(9));
        }
        std::vector<bool> read(samples.size());
        StreamPlan plan = plan_of(samples);
        for (int step = 0; step < 20; ++step) {
            PlanTail tail{static_cast<std::uint32_t>(luck.below(samples.size() + 1)), {}};
            for (std::uint64_t left = luck.below(6); left > 0; --left) {
                tail.samples.push_back(static_cast<SampleIndex>(luck.below(10)));
            }
            std::vector<SampleIndex> cut;
            for (std::size_t position = tail.from; position < samples.size(); ++position) {
                if (!read[position]) {
                    cut.push_back(samples[position]);
                }
            }
            ASSERT_EQ(plan.extend(tail), cut);
            samples.resize(tail.from);
            samples.insert(samples.end(), tail.samples.begin(), tail.samples.end());
            read.resize(tail.from);
            read.resize(samples.size());
            ASSERT_EQ(plan.length(), samples.size());
            const auto sample = static_cast<SampleIndex>(luck.below(10));
            std::optional<std::uint32_t> expected;
            for (auto position = static_cast<std::uint32_t>(samples.size()); position-- > 0;) {
                expected = samples[position] == sample && !read[position] ? position : expected;
            }
            ASSERT_EQ(plan.next_position(sample), expected);
            ASSERT_EQ(plan.read(sample), expected.has_value());
            if (expected) {
                read[*expected] = true;
            }
            const auto frontier = std::ranges::find(read, false) - read.begin();
            ASSERT_EQ(plan.frontier(), frontier);
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
