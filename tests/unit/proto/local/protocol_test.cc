#include "proto/local/protocol.h"

#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"

namespace stoker::local {
namespace {

Begin begin() {
    Begin begin;
    begin.epoch = 2;
    begin.skip = 1000;
    begin.seed = 7;
    begin.rank = 3;
    begin.world_size = 8;
    begin.batch = 128;
    begin.contract = "importance";
    begin.job = "ns/resnet";
    begin.parameters = {{"beta", 0.33}, {"", -1}};
    begin.served_bytes = 625;
    begin.snapshot_bytes = 1U << 20U;
    return begin;
}

std::vector<Message> one_of_each() {
    return {
        Hello{kProtocolVersion, true, 77, 3, 8, 0xABCD, "train", "stoker-python/0.1.0"},
        Welcome{kProtocolVersion, 0x1122, 5000, "/stoker/node/abc"},
        Listing{123456},
        ErrorReply{9, "no such dataset"},
        Fetch{{1, 2, UINT64_MAX}},
        Fetched{{FetchStatus::kReady, FetchStatus::kOriginError}, "GET a/1: 404"},
        Plan{4, 5000, 17},
        Planned{},
        Consumed{4, {9, 8}},
        Report{1, 2, 3, 4, 5, 6, 7, 8},
        begin(),
        Begun{2, 640},
        Draw{2, 128},
        Drawn{2, true, {5, 6}, {5, 9}, {1, 3 | kKindOnNode}},
        Losses{2, {5, 9}, {0.25F, -0.0F}, {0.5F, 1e30F}},
        Similarity{{5, 9}, {~0ULL, 0}},
        AskEpoch{2},
        EpochTally{2, 10, 8, 2, 1, 3, 9, 1},
        AskSnapshot{},
        Snapshot{{std::byte{1}, std::byte{0}}},
        AskProbe{},
        Probe{7, 200},
        Probed{7, true, 1, 2, 3, 4, 5, 6},
        Counted{60, 6000, 4, 5'000'000'000},
        Peer{{std::byte{1}, std::byte{2}}, UINT64_MAX},
        Ping{},
        Pong{},
    };
}

TEST(LocalProtocol, TestsCoverEveryMessage) {
    EXPECT_EQ(one_of_each().size(), std::variant_size_v<Message>);
}

TEST(LocalProtocol, ClientsMaySendOnlyClientFrames) {
    const std::set<FrameType> clients = {
        FrameType::kFetch,
        FrameType::kPlan,
        FrameType::kConsumed,
        FrameType::kReport,
        FrameType::kBegin,
        FrameType::kDraw,
        FrameType::kLosses,
        FrameType::kAskEpoch,
        FrameType::kAskSnapshot,
        FrameType::kAskProbe,
        FrameType::kProbed,
        FrameType::kSimilarity};
    for (const Message& message : one_of_each()) {
        const auto type = static_cast<FrameType>(message.index() + 1);
        EXPECT_EQ(is_client_frame(type), clients.contains(type)) << message.index() + 1;
    }
}

TEST(LocalProtocol, EveryMessageRoundTrips) {
    for (const Message& message : one_of_each()) {
        const auto frame = encode_frame(message, 99);
        const auto header = decode_frame_header(frame).value();
        EXPECT_EQ(header.request_id, 99U);
        const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
        ASSERT_EQ(header.payload_bytes, payload.size());
        EXPECT_EQ(decode_payload(header.type, payload).value(), message);
    }
}

TEST(LocalProtocol, RejectsEveryCutPayload) {
    for (const Message& message : one_of_each()) {
        const auto frame = encode_frame(message, 1);
        const auto header = decode_frame_header(frame).value();
        const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
        for (std::size_t size = 0; size < payload.size(); ++size) {
            EXPECT_FALSE(decode_payload(header.type, payload.first(size)).has_value());
        }
    }
}

TEST(LocalProtocol, RejectsALongerPayload) {
    auto frame = encode_frame(Listing{5}, 1);
    frame.push_back(std::byte{0});
    const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
    EXPECT_FALSE(decode_payload(FrameType::kListing, payload).has_value());
}

TEST(LocalProtocol, RejectsAFrameOverTheLimitByItsHeader) {
    auto frame = encode_frame(Planned{}, 1);
    frame.at(3) = std::byte{0x7F};
    EXPECT_EQ(decode_frame_header(frame).error().code, ErrorCode::kInvalidArgument);
}

TEST(LocalProtocol, RejectsTooManyParameters) {
    Begin many;
    many.parameters.resize(kParametersMax + 1);
    const auto frame = encode_frame(many, 1);
    const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
    EXPECT_FALSE(decode_payload(FrameType::kBegin, payload).has_value());
}

TEST(LocalProtocol, RejectsCountsBeyondTheFrame) {
    for (const Message& message :
         {Message{Drawn{1, false, {1}, {1}, {0}}}, Message{Losses{1, {1}, {1}}}}) {
        auto frame = encode_frame(message, 1);
        frame.at(kFrameHeaderBytes + 8 + 3) = std::byte{0xFF};
        const auto header = decode_frame_header(frame).value();
        const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
        EXPECT_FALSE(decode_payload(header.type, payload).has_value());
    }
}

// Losses may carry, per sample, the probability of the likeliest other class (p_others). Older
// sidecars do not know that field.
TEST(LocalProtocol, LossesWithoutOtherProbabilitiesHaveTheOldFormat) {
    const auto frame = encode_frame(Losses{2, {5, 9}, {0.25F, -1.5F}}, 0);
    EXPECT_EQ(frame.size(), kFrameHeaderBytes + 8 + 4 + 4 + 2 * (8 + 4));
    const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
    const Message message = decode_payload(FrameType::kLosses, payload).value();
    EXPECT_TRUE(std::get<Losses>(message).p_others.empty());
}

TEST(LocalProtocol, RejectsASimilarityFrameShorterThanItsCounts) {
    auto frame = encode_frame(Similarity{{1}, {1}}, 0);
    frame.at(kFrameHeaderBytes + 3) = std::byte{0xFF};
    const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
    EXPECT_FALSE(decode_payload(FrameType::kSimilarity, payload).has_value());
}

TEST(LocalProtocol, HelloOfAnotherVersionKeepsItsVersion) {
    auto frame = encode_frame(Hello{}, 1);
    frame.at(kFrameHeaderBytes + 4) = std::byte{9};
    const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
    const auto message = decode_payload(FrameType::kHello, payload).value();
    EXPECT_EQ(std::get<Hello>(message).version, 9);
}

TEST(LocalProtocol, RejectsAHelloWithoutTheMagic) {
    auto frame = encode_frame(Hello{}, 1);
    frame.at(kFrameHeaderBytes) = std::byte{0};
    EXPECT_FALSE(
        decode_payload(FrameType::kHello, std::span{frame}.subspan(kFrameHeaderBytes)).has_value());
}

TEST(LocalProtocol, GarbageNeverCrashesTheDecoder) {
    Prng prng{20261121};
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> garbage(prng.below(80));
        for (auto& byte : garbage) {
            byte = static_cast<std::byte>(prng());
        }
        const auto type = static_cast<FrameType>(1 + prng.below(24));
        const auto message = decode_payload(type, garbage);
        if (message) {
            EXPECT_LE(encode_frame(*message, 0).size(), kFrameHeaderBytes + 4096 * 2 + 80);
        }
        if (garbage.size() >= kFrameHeaderBytes) {
            const auto header = decode_frame_header(garbage);
            EXPECT_TRUE(!header || header->payload_bytes <= kFramePayloadBytesMax);
        }
    }
}

}  // namespace
}  // namespace stoker::local
