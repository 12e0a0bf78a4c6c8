#include "sidecar/core/answer_times.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;

void note(AnswerTimes& times, std::size_t count, Duration time) {
    for (std::size_t i = 0; i < count; ++i) {
        times.note(time);
    }
}

TEST(AnswerTimes, HasNoEstimateBeforeEnoughAnswers) {
    AnswerTimes times;
    note(times, AnswerTimes::kAnswersMin - 1, milliseconds{3});
    EXPECT_EQ(times.slow(), std::nullopt);
    EXPECT_EQ(Patience::of(times, {}), Patience::kMost);
    times.note(milliseconds{3});
    EXPECT_EQ(times.slow(), milliseconds{3});
    EXPECT_EQ(Patience::of(times, {}), Patience::kLeast + milliseconds{12});
}

TEST(AnswerTimes, EstimatesTheSlowestPercentOfRecentAnswers) {
    AnswerTimes times;
    note(times, 480, milliseconds{2});
    note(times, 16, milliseconds{90});
    EXPECT_EQ(times.slow(), milliseconds{90});
    note(times, 512, milliseconds{4});
    EXPECT_EQ(times.slow(), milliseconds{4}) << "old answers are forgotten";
}

// Patience: the time to wait for a peer before the origin is asked as well. A peer that lacks the
// sample must itself ask the origin before it answers, so the wait is longer than that takes.
TEST(AnswerTimes, PatienceCoversThePeersReadOfTheOrigin) {
    AnswerTimes peer;
    AnswerTimes origin;
    note(peer, 32, milliseconds{1});
    note(origin, 32, milliseconds{400});
    EXPECT_GT(Patience::of(peer, origin), milliseconds{800});
}

// The slow answers of a link that was slow for a while still count after it has recovered, and a
// trainer waits: so there is an upper limit.
TEST(AnswerTimes, PatienceIsBounded) {
    AnswerTimes peer;
    note(peer, 32, milliseconds{4'000});
    EXPECT_EQ(Patience::of(peer, {}), Patience::kMost);
}

}  // namespace
}  // namespace stoker::sidecar
