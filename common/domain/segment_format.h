#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/residency_word.h"

// The bytes of a segment file (docs/design/segment-format.md). The sidecar writes it, the client
// library maps it. Pure: byte buffers in, values out.
//
//   header (64) · records, each at a multiple of 64: record header (64) · payload · zero padding ·
//   … · footer when sealed
namespace stoker::domain {

inline constexpr std::uint32_t kSegmentFormatVersion = 1;
inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kRecordHeaderBytes = 64;

struct SegmentHeader {
    SegmentSeq seq{};
    RevisionId revision{};
    SegmentClass segment_class = SegmentClass::kResident;
    std::uint64_t capacity_bytes = 0;  // the file never grows past this; readers map this much

    bool operator==(const SegmentHeader&) const = default;
};

struct RecordHeader {
    SampleId sample{};
    SegmentSeq seq{};  // of its own segment, to detect a stale block of another
    std::uint64_t payload_bytes = 0;
    std::uint32_t payload_crc32c = 0;

    bool operator==(const RecordHeader&) const = default;
};

// One entry of a sealed segment's footer index.
struct FooterEntry {
    SampleId sample{};
    std::uint64_t record_offset = 0;
    std::uint64_t payload_bytes = 0;

    bool operator==(const FooterEntry&) const = default;
};

// Bytes of a record with this payload, header and padding included.
constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes) {
    return (kRecordHeaderBytes + payload_bytes + kRecordAlignment - 1) / kRecordAlignment *
           kRecordAlignment;
}

// Upper bound of the record bytes of a whole dataset with this payload on a node: the grant that a
// full copy needs.
constexpr Bytes records_bytes_max(Bytes payload, std::uint64_t sample_count) {
    return payload + Bytes{kRecordHeaderBytes + kRecordAlignment - 1} * sample_count;
}

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header);

// kCorruption: not a segment, or damaged. kInvalidArgument: unsupported version; the message names
// both.
Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes);

std::array<std::byte, kRecordHeaderBytes> encode_record_header(const RecordHeader& header);

// nullopt if there is no intact record header of this segment, because the data ends or is damaged.
std::optional<RecordHeader> decode_record_header(std::span<const std::byte> bytes, SegmentSeq seq);

// The footer is [entries][count u64][crc32c u32][magic u32]; it ends the file at a multiple of 64.
std::vector<std::byte> encode_footer(std::span<const FooterEntry> entries, SegmentSeq seq);

// `tail` is the end of the file, at least kFooterTailBytes long. Returns the length of the whole
// footer, or nullopt if the segment is not sealed.
inline constexpr std::size_t kFooterTailBytes = 64;
std::optional<std::uint64_t> footer_bytes(std::span<const std::byte> tail);

// `footer` has exactly footer_bytes() bytes. kCorruption: the checksum does not match.
Result<std::vector<FooterEntry>> decode_footer(std::span<const std::byte> footer, SegmentSeq seq);

}  // namespace stoker::domain
