// Frames of a peer, received in pieces. The first byte chooses the size of the pieces.
#include <algorithm>

#include "common/base/wire.h"
#include "sidecar/peers/frame_reader.h"
#include "sidecar/peers/frame_writer.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

namespace {

using sidecar::FrameReader;
using sidecar::FrameWriter;

constexpr std::size_t kPayloadMax = std::size_t{64} << 10U;

std::vector<std::byte> written(FrameWriter& writer) {
    std::vector<std::byte> bytes;
    for (auto record = writer.record(); !record.empty(); record = writer.record()) {
        bytes.insert(bytes.end(), record.begin(), record.end());
        writer.wrote(record.size());
    }
    return bytes;
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    const std::size_t piece_max = std::to_integer<std::size_t>(input[0]) + 1;
    const auto bytes = input.subspan(1);
    FrameReader reader{kPayloadMax, std::make_shared<sidecar::PayloadPool>()};
    FrameWriter writer;
    std::size_t whole = 0;  // bytes up to the end of the last frame
    for (std::size_t used = 0; used < bytes.size();) {
        const auto room = reader.room();
        expect(!room.empty(), "there is always room");
        const auto count = std::min({room.size(), bytes.size() - used, piece_max});
        std::copy_n(bytes.data() + used, count, room.data());
        used += count;
        auto frame = reader.filled(count);
        if (!frame) {
            break;
        }
        if (*frame) {
            expect(!(*frame)->head.empty(), "a frame has a head");
            whole = used;
            writer.push(**std::move(frame));
        }
    }
    expect(
        std::ranges::equal(written(writer), bytes.first(whole)), "frames are written as received");
}

std::vector<std::string> seeds() {
    const auto prefix = [](std::uint32_t head, std::uint32_t payload) {
        return WireWriter{}.put(head).put(payload).text();
    };
    return {
        "\x05" + prefix(3, 0) + "abc" + prefix(1, 4) + "dwxyz",
        "\xff" + prefix(10, 40'000) + std::string(40'010, 'p'),
        "\x01" + prefix(0xFFFFFFFF, 0xFFFFFFFF)};
}

}  // namespace stoker::fuzz
