#include "sidecar/service/replay_log.h"

#include <numeric>
#include <variant>

#include <gmock/gmock.h>

#include "sidecar/service/client_memfds.h"
#include "tests/support/sample_client.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// A frame as received from a socket.
Frame frame_of(const local::Message& message, std::uint64_t request_id, UniqueFd fd = {}) {
    return {request_id, message, std::move(fd)};
}

std::deque<Frame> frames_of(const ReplayLog& log, bool ahead = true) {
    return log.replay(ahead);
}

std::vector<local::Message> messages_of(const ReplayLog& log) {
    std::vector<local::Message> messages;
    for (const auto& frame : frames_of(log)) {
        messages.push_back(frame.message);
    }
    return messages;
}

Frame plan_frame(const std::vector<std::uint64_t>& samples, std::uint64_t start = 0) {
    return frame_of(local::Plan{3, samples.size(), start}, 5, test::sealed_ids(samples));
}

TEST(ReplayLog, IsEmptyForASessionWithoutRequests) {
    EXPECT_THAT(frames_of(ReplayLog{}), SizeIs(0));
}

TEST(ReplayLog, StartsThePlanAfterTheContiguousReads) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(plan_frame({10, 11, 12, 13, 14}));
    log.on_request(frame_of(local::Consumed{3, {11, 10}}, 0));
    log.on_request(frame_of(local::Consumed{3, {14}}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_EQ(std::get<local::Plan>(messages[0]), (local::Plan{3, 5, 2}));
    EXPECT_THAT(std::get<local::Consumed>(messages[1]).samples, ElementsAre(14));
    EXPECT_TRUE(frames_of(log)[0].fd.valid());
}

TEST(ReplayLog, CountsARepeatedSampleOnceForEachReading) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(plan_frame({7, 7, 8}));
    log.on_request(frame_of(local::Consumed{3, {7}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 1U);
}

TEST(ReplayLog, KeepsTheLookaheadAsUnread) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(frame_of(local::Plan{3, 2, 0}, 5, test::sealed_ids({1, 2, 2, 1})));
    log.on_request(frame_of(local::Consumed{3, {1, 2, 2}}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_EQ(std::get<local::Plan>(messages[0]), (local::Plan{3, 2, 2}));
    EXPECT_THAT(std::get<local::Consumed>(messages[1]).samples, ElementsAre(2)) << "read again";
    const auto plan = read_plan(frames_of(log)[0].fd, {3, 2, 2}, 10);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_EQ(plan->horizon(), 4U);
    const auto old = read_plan(frames_of(log, false)[0].fd, {3, 2, 2}, 10);
    ASSERT_TRUE(old.has_value()) << old.error().message;
    EXPECT_EQ(old->horizon(), 2U) << "for a leader that does not know of it";
}

TEST(ReplayLog, ContinuesFromThePlansStart) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(plan_frame({1, 2, 3, 4}, 2));
    log.on_request(frame_of(local::Consumed{3, {3}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 3U);
}

TEST(ReplayLog, StartsALongPlanAfterItsReads) {
    std::vector<std::uint64_t> samples(200000);
    std::iota(samples.begin(), samples.end(), 0U);
    ReplayLog log;
    log.set_sample_count(samples.size());
    log.on_request(plan_frame(samples));
    samples.resize(150000);
    log.on_request(frame_of(local::Consumed{3, samples}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_EQ(std::get<local::Plan>(messages[0]).start, 150000U);
}

TEST(ReplayLog, ReplaysReadsBeyondAGapInPieces) {
    std::vector<std::uint64_t> samples(250'001);
    std::iota(samples.begin(), samples.end(), 0U);
    ReplayLog log;
    log.set_sample_count(samples.size());
    log.on_request(plan_frame(samples));
    samples.erase(samples.begin());
    log.on_request(frame_of(local::Consumed{3, samples}, 0));
    const auto frames = frames_of(log);
    ASSERT_THAT(frames, SizeIs(4));
    for (const auto& frame : frames) {
        EXPECT_LT(
            local::encode_frame(frame.message, 0).size(), FrameSocket::Limits{}.payload_bytes_max);
    }
    EXPECT_EQ(std::get<local::Consumed>(messages_of(log)[3]).samples.back(), 250'000U);
}

TEST(ReplayLog, BoundsReadsByThePlanAndIgnoresInvalidIds) {
    ReplayLog log;
    log.set_sample_count(10);
    log.on_request(plan_frame({1, 2, 3}));
    log.on_request(frame_of(local::Consumed{3, {UINT64_MAX, 10, 2}}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_THAT(std::get<local::Consumed>(messages[1]).samples, ElementsAre(2));
    log.on_request(frame_of(local::Consumed{3, std::vector<std::uint64_t>(90'000, 2)}, 0));
    EXPECT_THAT(
        std::get<local::Consumed>(messages_of(log)[1]).samples,
        SizeIs(3 + local::kAheadSamplesMax));
}

TEST(ReplayLog, IsFullWhenRequestsPileUp) {
    ReplayLog log;
    log.set_sample_count(10);
    const std::vector<std::uint64_t> many(100'000);
    std::uint64_t request = 1;
    while (!log.is_full()) {
        log.on_request(frame_of(local::Fetch{many}, request++));
    }
    EXPECT_LE(request, 8U);
    log.on_answer(frame_of(local::Fetched{}, 1));
    EXPECT_FALSE(log.is_full());
    log.on_request(frame_of(local::Fetch{many}, 2));
    EXPECT_FALSE(log.is_full()) << "the same request counts once";
}

TEST(ReplayLog, ForgetsTheProgressOfAReplacedPlanAndOfOtherEpochs) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(plan_frame({1, 2}));
    log.on_request(frame_of(local::Consumed{3, {1}}, 0));
    log.on_request(plan_frame({1, 2}));
    log.on_request(frame_of(local::Consumed{2, {1}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 0U);
}

TEST(ReplayLog, RepeatsUnansweredRequests) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(frame_of(local::Fetch{{1}}, 8));
    log.on_request(frame_of(local::Fetch{{2}}, 9));
    log.on_answer(frame_of(local::Fetched{}, 8));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_THAT(std::get<local::Fetch>(messages[0]).samples, ElementsAre(2));
}

TEST(ReplayLog, DistinguishesAReplayedPlanFromAnUnansweredOne) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(plan_frame({1}));
    EXPECT_FALSE(log.is_repeated(5));
    log.on_answer(frame_of(local::Planned{}, 5));
    EXPECT_TRUE(log.is_repeated(5));
    EXPECT_FALSE(log.is_repeated(6));
}

TEST(ReplayLog, PassesOnAPlanWhoseMemfdIsMissing) {
    ReplayLog log;
    log.set_sample_count(1000);
    log.on_request(frame_of(local::Plan{3, 2, 0}, 5));
    const auto frames = frames_of(log);
    ASSERT_THAT(frames, SizeIs(1));
    EXPECT_FALSE(frames[0].fd.valid());
}

class BegunLog : public testing::Test {
protected:
    BegunLog() {
        log.set_sample_count(20);
        BeginState state;
        state.served = {std::byte{0b1}};
        state.snapshot = "seen";
        begin.epoch = 4;
        begin.skip = 1;
        begin.contract = "windowed";
        begin.served_bytes = state.served.size();
        begin.snapshot_bytes = state.snapshot.size();
        log.on_request(frame_of(begin, 7, seal_begin_state(state).value()));
    }

    void drew(std::uint64_t epoch, const std::vector<std::uint64_t>& samples) {
        local::Drawn drawn{epoch, false, samples, samples, {}};
        drawn.kinds.resize(samples.size());
        log.on_answer(frame_of(drawn, 8));
    }

    // The state that a new leader reads from the replayed begin.
    std::pair<local::Begin, BeginState> again() {
        const auto frames = frames_of(log);
        const auto said = std::get<local::Begin>(messages_of(log).at(0));
        return {said, read_begin_state(frames.at(0).fd, said, 20).value()};
    }

    ReplayLog log;
    local::Begin begin;
};

TEST_F(BegunLog, ReplaysTheBeginUnchanged) {
    const auto [said, state] = again();
    EXPECT_EQ(said, begin);
    EXPECT_THAT(state.served, ElementsAre(std::byte{0b1}));
    EXPECT_EQ(state.snapshot, "seen");
}

TEST_F(BegunLog, CountsLaterDrawsAsServed) {
    drew(4, {2, 19});
    drew(4, {8});
    const auto [said, state] = again();
    EXPECT_EQ(said.skip, 4U);
    EXPECT_THAT(state.served, ElementsAre(std::byte{0b101}, std::byte{1}, std::byte{0b1000}));
    EXPECT_EQ(state.snapshot, "seen");
}

TEST_F(BegunLog, IgnoresDrawsOfAnotherEpochAndForeignIds) {
    drew(3, {5});
    drew(4, {1000});
    const auto [said, state] = again();
    EXPECT_THAT(state.served, ElementsAre(std::byte{1}, std::byte{0}, std::byte{0}));
}

TEST_F(BegunLog, RepeatsUnansweredDrawsAfterTheBegin) {
    log.on_request(frame_of(local::Draw{4, 10}, 9));
    log.on_request(frame_of(local::AskEpoch{4}, 10));
    log.on_answer(frame_of(local::EpochTally{}, 10));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_EQ(std::get<local::Draw>(messages[1]), (local::Draw{4, 10}));
}

TEST_F(BegunLog, DropsTheAnswerToAReplayedBegin) {
    EXPECT_FALSE(log.is_repeated(7));
    log.on_answer(frame_of(local::Begun{4, 0}, 7));
    EXPECT_TRUE(log.is_repeated(7));
}

TEST_F(BegunLog, PassesOnAMemfdThatDoesNotMatchTheBegin) {
    local::Begin lie = begin;
    lie.served_bytes = 3;
    log.on_request(frame_of(lie, 9, test::sealed_ids({1})));
    drew(4, {2});
    EXPECT_EQ(std::get<local::Begin>(messages_of(log).at(0)), lie);
}

TEST_F(BegunLog, ReplaysOnlyThePlanIfItFollowedTheBegin) {
    log.on_request(plan_frame({1, 2}));
    ASSERT_THAT(messages_of(log), SizeIs(1));
    EXPECT_TRUE(std::holds_alternative<local::Plan>(messages_of(log).at(0)));
}

}  // namespace
}  // namespace stoker::sidecar
