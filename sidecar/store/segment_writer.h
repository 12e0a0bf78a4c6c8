#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/segment_format.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// One segment file that is being written. Several records may be in progress at once; they are
// committed in the order of their offsets, so that the committed part has no hole and a scan of
// record headers finds all of it.
//
//   reserve() → write() → complete() … seal()
//
// A large record may be written in parts: reserve() → allocate() → write_part()… → write_head() →
// complete().
//
// Threads: allocate() and the write functions may run on any threads, in parallel with all other
// calls. The other calls must be serialized by the owner's lock.
class SegmentWriter {
public:
    // Creates `segments/<seq>.seg` in `directory` and writes the header. kAlreadyExists: the number
    // is taken. After any other error the file is removed again if possible.
    static Result<std::unique_ptr<SegmentWriter>> create(
        Device& device, const std::string& directory, const domain::SegmentHeader& header);

    // Capacity of a segment that has only this payload.
    static std::uint64_t capacity_for(std::uint64_t payload_bytes);

    [[nodiscard]] const domain::SegmentHeader& header() const { return header_; }

    // Whether another record with this payload, plus the footer, fits into the capacity.
    [[nodiscard]] bool fits(std::uint64_t payload_bytes) const;

    // Reserves the space of the next record, which must fit; returns its offset. Every reserve()
    // needs one complete().
    std::uint64_t reserve(domain::SampleId sample, std::uint64_t payload_bytes);

    Status write(
        std::uint64_t record_offset,
        domain::SampleId sample,
        std::span<const std::byte> payload,
        std::uint32_t payload_crc32c);

    // Writes in parts. Call allocate() first: it allocates the blocks of the whole capacity,
    // zero-filled, so that no write runs out of disk and an unfinished file ends with zeroes. Parts
    // may be written in any order. Call write_head() last: without it a scan finds no record.
    Status allocate();
    Status write_part(
        std::uint64_t record_offset, std::uint64_t payload_offset, std::span<const std::byte> part);
    Status write_head(
        std::uint64_t record_offset,
        domain::SampleId sample,
        std::uint64_t payload_bytes,
        std::uint32_t payload_crc32c);

    // Reports the result of a record's write. Returns the records that are committed by this, in
    // order; none while an earlier one is in progress. A failed write fails every later record of
    // the segment, too, and no more can be reserved.
    std::vector<domain::FooterEntry> complete(std::uint64_t record_offset, bool written);

    [[nodiscard]] bool is_committed(std::uint64_t record_offset) const {
        return record_offset < committed_end_;
    }

    [[nodiscard]] bool is_failed(std::uint64_t record_offset) const {
        return record_offset >= failed_from_;
    }

    [[nodiscard]] bool is_broken() const { return failed_from_ != kNever; }

    // Whether no record is in progress.
    [[nodiscard]] bool is_idle() const { return pending_.empty(); }

    // Truncates uncommitted bytes and writes the footer. Call it once, when idle. After an error
    // the segment is still valid: a scan finds its records without a footer.
    Status seal();

    // Size of header, committed records and footer.
    [[nodiscard]] std::uint64_t file_bytes() const { return committed_end_ + footer_bytes_; }

private:
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

    struct Pending {
        domain::FooterEntry entry;
        bool completed = false;
    };

    SegmentWriter(std::unique_ptr<DeviceFile> file, const domain::SegmentHeader& header)
        : file_(std::move(file)),
          header_(header) {}

    std::unique_ptr<DeviceFile> file_;
    domain::SegmentHeader header_;
    std::deque<Pending> pending_;  // in the order of their offsets
    std::vector<domain::FooterEntry> committed_;
    std::uint64_t reserved_end_ = domain::kSegmentHeaderBytes;
    std::uint64_t committed_end_ = domain::kSegmentHeaderBytes;
    std::uint64_t failed_from_ = kNever;
    std::uint64_t footer_bytes_ = 0;
    std::size_t records_reserved_ = 0;
};

}  // namespace stoker::sidecar
