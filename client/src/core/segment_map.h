#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "client/src/core/mapped_file.h"
#include "common/base/result.h"
#include "common/domain/segment_format.h"

namespace stoker::client {

// The name of a segment inside a node directory's `segments` folder.
std::string segment_file_name(domain::SegmentSeq seq);

// One segment file, mapped once to its full capacity. Shared by the reader's table and by every
// view of a sample in it, so a view outlives eviction and unlinking. Holds no file descriptor.
// Thread-safe.
class SegmentMap {
public:
    // Opens `<seq>.seg` below the directory `segments_fd`. kNotFound: unlinked; read the residency
    // table again. kCorruption, kInvalidArgument: a segment of another revision or number, or
    // another format version.
    static Result<std::shared_ptr<SegmentMap>> open(
        int segments_fd, domain::SegmentSeq seq, domain::RevisionId revision);

    // The bytes [offset, offset + length); nullopt if the file ends before them (checks again after
    // it grew). Never returns bytes past the end of the file.
    [[nodiscard]] std::optional<std::span<const std::byte>> slice(
        int segments_fd, std::uint64_t offset, std::uint64_t length_bytes);

    // Whether the file still has its name; a sequence number is never reused.
    [[nodiscard]] bool is_linked(int segments_fd) const;

    [[nodiscard]] domain::SegmentSeq seq() const { return seq_; }

private:
    SegmentMap(MappedFile file, domain::SegmentSeq seq, std::uint64_t file_bytes)
        : file_(std::move(file)),
          seq_(seq),
          file_bytes_(file_bytes) {}

    MappedFile file_;
    domain::SegmentSeq seq_;
    std::atomic<std::uint64_t> file_bytes_;  // the largest size seen; a segment only grows
};

}  // namespace stoker::client
