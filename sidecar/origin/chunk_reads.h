#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

// Combines fetches of samples in the same chunk into range requests. Pure: times are arguments.
namespace stoker::sidecar {

// The gap between two samples, in bytes, that is cheaper to read than a second request: the bytes
// that one connection receives while a request waits for its first byte. Both are means of the last
// reads. Not thread-safe.
class GapLimit {
public:
    // Records a request that got its first byte after `first_byte` and all its `bytes` after
    // `whole`.
    void note(Duration first_byte, Duration whole, std::uint64_t bytes);

    // At most kGapBytesMax; 0 before the first note().
    [[nodiscard]] std::uint64_t bytes() const;

    static constexpr std::uint64_t kGapBytesMax = 1U << 20U;

private:
    double first_byte_ = 0;  // seconds
    double seconds_ = 0;     // seconds spent receiving, decayed
    double received_ = 0;    // bytes received, decayed alike
};

// One object at the origin, named by a sample's place: a chunk or a tar shard.
struct ChunkObject {
    std::string key;
    std::string etag;
    std::uint64_t bytes = 0;

    auto operator<=>(const ChunkObject&) const = default;
};

// The bytes that one fetch needs; the offset is within the chunk. `ticket` identifies the fetch for
// the caller.
struct ChunkPart {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;  // at least 1
    std::uint64_t ticket = 0;

    auto operator<=>(const ChunkPart&) const = default;
};

// One range request and the parts that it covers, in order of their offsets.
struct ChunkRead {
    ChunkObject chunk;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::vector<ChunkPart> parts;
};

// The queue of reads. Parts of one chunk that wait at the same time are read together if no gap
// between two of them exceeds the limit, and all gaps of a read together are at most as many bytes
// as its parts. So the reads in flight have at most twice the bytes of the fetches. Chunks are
// served in the order of their first waiting part. Not thread-safe.
class ChunkReads {
public:
    struct Limits {
        std::uint32_t reads_max = 64;  // at a time
        std::uint64_t read_bytes_max = 16U << 20U;
    };

    explicit ChunkReads(Limits limits)
        : limits_(limits) {}

    // Replaces `reads_max`. Running reads above it are not ended.
    void set_reads_max(std::uint32_t reads_max) { limits_.reads_max = reads_max; }

    void add(const ChunkObject& chunk, ChunkPart part);

    // The next request to send, which takes a slot; nullopt: no part waits, or no slot is free.
    std::optional<ChunkRead> next(std::uint64_t gap_max);

    // Call when a read has ended: frees its slot.
    void end() { --running_; }

    [[nodiscard]] std::uint32_t running() const { return running_; }

private:
    Limits limits_;
    std::uint32_t running_ = 0;
    std::map<ChunkObject, std::vector<ChunkPart>> waiting_;
    std::deque<ChunkObject> order_;  // the objects in waiting_, in order of their first part
};

}  // namespace stoker::sidecar
