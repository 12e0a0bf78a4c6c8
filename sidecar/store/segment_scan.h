#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "common/domain/segment_format.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The contents of a segment file.
struct SegmentContents {
    std::vector<domain::FooterEntry> records;  // the valid ones of this manifest, by offset
    std::uint64_t records_dropped = 0;         // torn, wrong checksum, or not of this manifest
    std::uint64_t file_bytes = 0;
    bool sealed = false;
};

enum class Trust : std::uint8_t {
    kFooter,    // trust a valid footer: payloads were written before it, and nothing can
                // have been lost since
    kChecksums  // read every payload and compare its checksum
};

// Errors: kCorruption, kInvalidArgument (another version), as decode_segment_header(); or the
// device's error.
Result<domain::SegmentHeader> read_segment_header(DeviceFile& file);

// Finds the records of a segment by its footer, or without one by consecutive headers up to the
// first invalid one. Records found by headers always get their checksums compared. Never trusts a
// length or an offset that exceeds the file. Errors: the device's.
Result<SegmentContents> scan_segment(
    DeviceFile& file, domain::SegmentSeq seq, const domain::ManifestView& manifest, Trust trust);

// Compares a record of any size with its checksum, in little memory. kCorruption: wrong header,
// length or checksum. Or the device's error.
Status check_record(DeviceFile& file, domain::SegmentSeq seq, const domain::FooterEntry& record);

// A whole record in memory.
struct RecordBytes {
    std::vector<std::byte> bytes;  // header and payload
    std::uint32_t payload_crc32c = 0;

    [[nodiscard]] std::span<const std::byte> payload() const {
        return std::span{bytes}.subspan(domain::kRecordHeaderBytes);
    }
};

// Reads a record. kCorruption: wrong header, length or checksum. Or the device's error.
Result<RecordBytes> read_record(
    DeviceFile& file, domain::SegmentSeq seq, const domain::FooterEntry& record);

}  // namespace stoker::sidecar
