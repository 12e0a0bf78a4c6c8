#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/base/wire.h"
#include "sidecar/peers/frame_reader.h"
#include "sidecar/peers/frame_writer.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/peers/frames.h"

namespace stoker::sidecar {
namespace {

using test::frame_of;
using test::same;

constexpr std::size_t kPayloadMax = std::size_t{1} << 20U;

std::vector<std::byte> written(FrameWriter& writer, std::size_t record_max) {
    std::vector<std::byte> bytes;
    for (auto record = writer.record(); !record.empty(); record = writer.record()) {
        EXPECT_LE(record.size(), FrameWriter::kRecordBytes);
        const auto part = record.first(std::min(record.size(), record_max));
        bytes.insert(bytes.end(), part.begin(), part.end());
        writer.wrote(part.size());
    }
    return bytes;
}

// The frames in `bytes`, received in pieces of `piece_max` bytes at most.
Result<std::vector<PeerFrame>> frames_in(std::span<const std::byte> bytes, std::size_t piece_max) {
    FrameReader reader{kPayloadMax, std::make_shared<PayloadPool>()};
    std::vector<PeerFrame> frames;
    while (!bytes.empty()) {
        const auto room = reader.room();
        const auto count = std::min({room.size(), bytes.size(), piece_max});
        std::copy_n(bytes.begin(), count, room.begin());
        bytes = bytes.subspan(count);
        STOKER_TRY(auto frame, reader.filled(count));
        if (frame) {
            frames.push_back(*std::move(frame));
        }
    }
    return frames;
}

std::vector<std::byte> prefix(std::uint32_t head_bytes, std::uint32_t payload_bytes) {
    return std::move(WireWriter{}.put(head_bytes).put(payload_bytes)).take();
}

TEST(Frames, ReaderReturnsWhatWasWrittenInPiecesOfAnySize) {
    Prng prng{test::seed()};
    for (int round = 0; round < 30; ++round) {
        std::vector<PeerFrame> frames;
        FrameWriter writer;
        for (std::uint64_t i = prng.below(12); i < 12; ++i) {
            const std::size_t head = 1 + prng.below(prng.below(5) == 0 ? PeerFrame::kHeadMax : 99);
            const std::size_t payload =
                prng.below(3) == 0 ? 0 : prng.below(prng.below(200'000) + 1);
            frames.push_back(frame_of(head, payload, prng()));
            writer.push(frames.back());
        }
        const auto bytes = written(writer, 1 + prng.below(40'000));
        const auto back = frames_in(bytes, 1 + prng.below(70'000));
        ASSERT_TRUE(back);
        ASSERT_EQ(back->size(), frames.size());
        for (std::size_t i = 0; i < frames.size(); ++i) {
            EXPECT_TRUE(same((*back)[i], frames[i]));
        }
    }
}

TEST(Frames, SmallFramesShareARecord) {
    FrameWriter writer;
    for (int i = 0; i < 4; ++i) {
        writer.push(frame_of(20, 1000, 1));
    }
    EXPECT_EQ(writer.record().size(), 4 * (kFramePrefixBytes + 1020));
}

TEST(Frames, LargePayloadIsNotCopied) {
    FrameWriter writer;
    const PeerFrame frame = frame_of(20, 100'000, 1);
    writer.push(frame);
    writer.wrote(writer.record().size());
    const auto record = writer.record();
    EXPECT_EQ(record.size(), FrameWriter::kRecordBytes);
    EXPECT_GE(record.data(), frame.payload.bytes.data());
    EXPECT_LT(record.data(), frame.payload.bytes.data() + frame.payload.bytes.size());
}

TEST(Frames, HolderStaysWhileARecordViewsItsPayload) {
    FrameWriter writer;
    // The payload ends where a TLS record ends: no bytes of its frame are left, but the record that
    // views them is still to be written.
    PeerFrame frame =
        frame_of(FrameWriter::kRecordBytes - kFramePrefixBytes, FrameWriter::kRecordBytes, 1);
    const std::weak_ptr<const void> holder = frame.payload.holder;
    writer.push(std::exchange(frame, {}));
    writer.wrote(writer.record().size());
    ASSERT_EQ(writer.record().size(), FrameWriter::kRecordBytes);
    EXPECT_TRUE(writer.take_spent().empty());
    EXPECT_FALSE(holder.expired());
    writer.wrote(FrameWriter::kRecordBytes);
    EXPECT_EQ(writer.take_spent().size(), 1U);
    EXPECT_TRUE(holder.expired());
}

TEST(Frames, ClearReturnsTheHoldersOfAllPayloads) {
    FrameWriter writer;
    for (int i = 0; i < 3; ++i) {
        writer.push(frame_of(1, 50'000, 1));
    }
    writer.wrote(writer.record().size());
    EXPECT_EQ(writer.clear().size(), 3U);
    EXPECT_TRUE(writer.record().empty());
}

TEST(Frames, LengthsOutOfBoundsAreCorruption) {
    const auto verdict = [](std::uint32_t head, std::uint32_t payload) {
        const auto frames = frames_in(prefix(head, payload), 8);
        return frames ? "ok" : to_string(frames.error().code);
    };
    EXPECT_EQ(verdict(1, 0), "ok");
    EXPECT_EQ(verdict(PeerFrame::kHeadMax, kPayloadMax), "ok");
    EXPECT_EQ(verdict(0, 1), "corruption");
    EXPECT_EQ(verdict(PeerFrame::kHeadMax + 1, 0), "corruption");
    EXPECT_EQ(verdict(1, kPayloadMax + 1), "corruption");
    EXPECT_EQ(verdict(0xFFFFFFFF, 0), "corruption");
    EXPECT_EQ(verdict(1, 0xFFFFFFFF), "corruption");
}

TEST(Frames, ReaderKnowsWhetherAFrameIsIncomplete) {
    FrameReader reader{kPayloadMax, std::make_shared<PayloadPool>()};
    EXPECT_TRUE(reader.is_between_frames());
    const auto begun = prefix(5, 0);
    std::copy(begun.begin(), begun.end(), reader.room().begin());
    ASSERT_TRUE(reader.filled(1));
    EXPECT_FALSE(reader.is_between_frames());
    ASSERT_TRUE(reader.filled(7));
    EXPECT_FALSE(reader.is_between_frames());
    ASSERT_TRUE(reader.filled(5));
    EXPECT_TRUE(reader.is_between_frames());
}

}  // namespace
}  // namespace stoker::sidecar
