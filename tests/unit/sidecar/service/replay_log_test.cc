#include <numeric>
#include <variant>

#include <gmock/gmock.h>

#include "sidecar/service/relay.h"
#include "tests/support/sample_client.h"

namespace stoker::sidecar {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// A frame as it comes off a socket.
Frame frame_of(const local::Message& message, std::uint64_t request_id, UniqueFd fd = {}) {
    const auto bytes = local::encode_frame(message, request_id);
    const std::span all{bytes};
    return {
        local::decode_frame_header(all.first(local::kFrameHeaderBytes)).value(),
        {all.begin() + local::kFrameHeaderBytes, all.end()},
        std::move(fd)};
}

std::vector<local::Message> messages_of(const ReplayLog& log) {
    std::vector<local::Message> messages;
    for (const auto& recorded : log.frames()) {
        const std::span all{recorded.bytes};
        const auto header = local::decode_frame_header(all.first(local::kFrameHeaderBytes)).value();
        messages.push_back(
            local::decode_payload(header.type, all.subspan(local::kFrameHeaderBytes)).value());
    }
    return messages;
}

Frame plan_frame(const std::vector<std::uint64_t>& samples, std::uint64_t start = 0) {
    return frame_of(local::Plan{3, samples.size(), start}, 5, test::sealed_ids(samples));
}

TEST(ReplayLog, SaysNothingOfASessionThatSaidNothing) {
    EXPECT_THAT(ReplayLog{}.frames(), SizeIs(0));
}

TEST(ReplayLog, StartsThePlanBehindWhatWasReadWithoutAGap) {
    ReplayLog log;
    log.on_request(plan_frame({10, 11, 12, 13, 14}));
    log.on_request(frame_of(local::Consumed{3, {11, 10}}, 0));
    log.on_request(frame_of(local::Consumed{3, {14}}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(2));
    EXPECT_EQ(std::get<local::Plan>(messages[0]), (local::Plan{3, 5, 2}));
    EXPECT_THAT(std::get<local::Consumed>(messages[1]).samples, ElementsAre(14));
    EXPECT_TRUE(log.frames()[0].fd.valid());
}

TEST(ReplayLog, CountsARepeatedSampleOnceForEachReading) {
    ReplayLog log;
    log.on_request(plan_frame({7, 7, 8}));
    log.on_request(frame_of(local::Consumed{3, {7}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 1U);
}

TEST(ReplayLog, GoesOnFromThePlansOwnStart) {
    ReplayLog log;
    log.on_request(plan_frame({1, 2, 3, 4}, 2));
    log.on_request(frame_of(local::Consumed{3, {3}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 3U);
}

TEST(ReplayLog, FollowsALongPlan) {
    std::vector<std::uint64_t> samples(200000);
    std::iota(samples.begin(), samples.end(), 0U);
    ReplayLog log;
    log.on_request(plan_frame(samples));
    samples.resize(150000);
    log.on_request(frame_of(local::Consumed{3, samples}, 0));
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_EQ(std::get<local::Plan>(messages[0]).start, 150000U);
}

TEST(ReplayLog, ForgetsTheProgressOfAReplacedPlanAndOfOtherEpochs) {
    ReplayLog log;
    log.on_request(plan_frame({1, 2}));
    log.on_request(frame_of(local::Consumed{3, {1}}, 0));
    log.on_request(plan_frame({1, 2}));
    log.on_request(frame_of(local::Consumed{2, {1}}, 0));
    EXPECT_EQ(std::get<local::Plan>(messages_of(log)[0]).start, 0U);
}

TEST(ReplayLog, AsksAgainForWhatWasNotAnswered) {
    ReplayLog log;
    log.on_request(frame_of(local::Fetch{{1}}, 8));
    log.on_request(frame_of(local::Fetch{{2}}, 9));
    log.on_answer(8);
    const auto messages = messages_of(log);
    ASSERT_THAT(messages, SizeIs(1));
    EXPECT_THAT(std::get<local::Fetch>(messages[0]).samples, ElementsAre(2));
}

TEST(ReplayLog, TellsARepeatedPlanFromOneThatIsStillOwedItsAnswer) {
    ReplayLog log;
    log.on_request(plan_frame({1}));
    EXPECT_FALSE(log.is_repeated_plan(5));
    log.on_answer(5);
    EXPECT_TRUE(log.is_repeated_plan(5));
    EXPECT_FALSE(log.is_repeated_plan(6));
}

TEST(ReplayLog, APlanWithoutItsMemfdIsTheLeadersToRefuse) {
    ReplayLog log;
    log.on_request(frame_of(local::Plan{3, 2, 0}, 5));
    const auto frames = log.frames();
    ASSERT_THAT(frames, SizeIs(1));
    EXPECT_FALSE(frames[0].fd.valid());
}

}  // namespace
}  // namespace stoker::sidecar
