// The C++ encoding of the local protocol matches tests/contract/golden/protocol.json;
// protocol_golden_test.py checks the same vectors in Python.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <cpprest/json.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "proto/local/protocol.h"

namespace stoker::local {
namespace {

struct Vector {
    std::uint64_t request_id = 0;
    std::string frame;  // hex
};

std::map<std::string, Vector> read_vectors() {
    std::ifstream file{STOKER_GOLDEN_DIR "/protocol.json"};
    std::map<std::string, Vector> vectors;
    const auto document = web::json::value::parse(file);
    for (const auto& item : document.at("vectors").as_array()) {
        vectors[item.at("name").as_string()] = {
            std::stoull(item.at("request_id").as_string()), item.at("frame").as_string()};
    }
    return vectors;
}

std::string to_hex(const std::vector<std::byte>& bytes) {
    std::string hex;
    for (const std::byte byte : bytes) {
        hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    return hex;
}

Begin begin() {
    Begin begin;
    begin.epoch = 2;
    begin.skip = 1000;
    begin.seed = UINT64_MAX;
    begin.rank = 3;
    begin.world_size = 8;
    begin.batch = 128;
    begin.contract = "importance";
    begin.job = "ns/resnet";
    begin.parameters = {{"beta", 0.33}, {"reuse", 3}};
    begin.served_bytes = 625;
    begin.snapshot_bytes = 1U << 20U;
    return begin;
}

Peer peer() {
    Peer peer;
    for (std::size_t i = 0; i < peer.secret.size(); ++i) {
        peer.secret[i] = static_cast<std::byte>(i);
    }
    peer.sidecar = 0x1122334455667788;
    return peer;
}

std::map<std::string, Message> messages() {
    return {
        {"hello", Hello{kProtocolVersion, true, 77, 3, 8, 0xABCD, "train", "stoker-python/0.1.0"}},
        {"hello with defaults", Hello{}},
        {"welcome", Welcome{kProtocolVersion, 0x1122334455667788, 5000, "/stoker/node/abc"}},
        {"listing", Listing{123456}},
        {"error", ErrorReply{1, "no dataset 'träin'"}},
        {"fetch", Fetch{{1, 2, UINT64_MAX}}},
        {"fetch without samples", Fetch{}},
        {"fetched",
         Fetched{
             {FetchStatus::kReady, FetchStatus::kReadAtOrigin, FetchStatus::kOriginError},
             "GET a/1: 404"}},
        {"plan", Plan{4, 5000, 17}},
        {"planned", Planned{}},
        {"consumed", Consumed{4, {9, 8}}},
        {"report", Report{1, 2, 3, 4, 5, 6, 7, 8}},
        {"welcome with contracts", Welcome{kProtocolVersion, 1, 2, "/n", kFeatureContracts}},
        {"welcome with all features",
         Welcome{
             kProtocolVersion,
             1,
             2,
             "/n",
             kFeatureContracts | kFeatureProbe | kFeatureCounts | kFeatureAhead | kFeaturePOthers}},
        {"begin", begin()},
        {"begin with defaults", Begin{}},
        {"begun", Begun{2, 640}},
        {"draw", Draw{2, 128}},
        {"drawn", Drawn{2, true, {5, 6, 7}, {5, 9, 7}, {1, 3 | kKindOnNode, 4}}},
        {"drawn without samples", Drawn{2, true, {}, {}, {}}},
        {"losses", Losses{2, {5, 9}, {0.25F, -1.5F}}},
        {"losses with other probabilities", Losses{2, {5, 9}, {0.25F, -1.5F}, {0.5F, 0.125F}}},
        {"ask epoch", AskEpoch{2}},
        {"epoch tally", EpochTally{2, 10, 8, 2, 1, 3, 9, 1}},
        {"ask snapshot", AskSnapshot{}},
        {"snapshot", Snapshot{{std::byte{1}, std::byte{0}, std::byte{255}}}},
        {"ask probe", AskProbe{}},
        {"probe", Probe{7, 200}},
        {"similarity", Similarity{{5, 9}, {1, 0x8000000000000000ULL}}},
        {"probed", Probed{7, true, 200, 3'000'000, 4096, 100, 1'000'000, 2048}},
        {"peer", peer()},
        {"ping", Ping{}},
        {"pong", Pong{}},
        {"counted", Counted{60, 1ULL << 33U, 4, 5'000'000'000}},
    };
}

TEST(LocalProtocolGolden, EveryVectorHasAMessage) {
    const auto known = messages();
    for (const auto& [name, vector] : read_vectors()) {
        EXPECT_TRUE(known.contains(name)) << name;
    }
    EXPECT_EQ(read_vectors().size(), known.size());
}

TEST(LocalProtocolGolden, MessagesEncodeToTheirFrames) {
    const auto vectors = read_vectors();
    for (const auto& [name, message] : messages()) {
        const Vector& vector = vectors.at(name);
        EXPECT_EQ(to_hex(encode_frame(message, vector.request_id)), vector.frame) << name;
    }
}

TEST(LocalProtocolGolden, FramesDecodeToTheirMessages) {
    const auto vectors = read_vectors();
    for (const auto& [name, message] : messages()) {
        SCOPED_TRACE(name);
        const std::string& hex = vectors.at(name).frame;
        std::vector<std::byte> frame;
        for (std::size_t at = 0; at < hex.size(); at += 2) {
            frame.push_back(static_cast<std::byte>(std::stoul(hex.substr(at, 2), nullptr, 16)));
        }
        const auto header = decode_frame_header(frame).value();
        EXPECT_EQ(header.request_id, vectors.at(name).request_id);
        const auto payload = std::span{frame}.subspan(kFrameHeaderBytes);
        EXPECT_EQ(decode_payload(header.type, payload).value(), message);
    }
}

}  // namespace
}  // namespace stoker::local
