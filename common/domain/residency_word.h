#pragma once

#include <cstdint>
#include <optional>

#include "common/domain/ids.h"

namespace stoker::domain {

// The purpose of a segment (docs/design/node-directory.md). The values are on disk and in shared
// memory.
enum class SegmentClass : std::uint8_t {
    kAbsent = 0,    // only in residency words: the sample is not on this node
    kResident = 1,  // counts against the grant; kept
    kWindow = 2,    // unlinked as soon as every job that needs it has read it
};

// Where the sample's record starts on this node.
struct Residency {
    SegmentClass segment_class = SegmentClass::kAbsent;
    SegmentSeq segment{};
    std::uint64_t record_offset = 0;  // bytes from the start of the segment file; a multiple of 64

    bool operator==(const Residency&) const = default;
};

inline constexpr std::uint64_t kRecordAlignment = 64;

// The 64-bit word of the residency table: class in bits 62..63, segment number in bits 30..61,
// offset / 64 in bits 0..29 (so a record starts below 64 GiB). Zero means absent. Writers store it
// with release order after the record's bytes are in the file; readers load it with acquire.
constexpr std::uint64_t pack_residency(const Residency& where) {
    return (static_cast<std::uint64_t>(where.segment_class) << 62U) |
           (static_cast<std::uint64_t>(where.segment.value()) << 30U) |
           (where.record_offset / kRecordAlignment);
}

// nullopt for an absent sample and for an unknown class; a reader treats both as a miss.
constexpr std::optional<Residency> unpack_residency(std::uint64_t word) {
    const auto segment_class = static_cast<SegmentClass>(word >> 62U);
    if (segment_class != SegmentClass::kResident && segment_class != SegmentClass::kWindow) {
        return std::nullopt;
    }
    constexpr std::uint64_t kOffsetMask = (1ULL << 30U) - 1;
    return Residency{
        segment_class,
        SegmentSeq{static_cast<std::uint32_t>(word >> 30U)},
        (word & kOffsetMask) * kRecordAlignment};
}

// Upper limit of a segment's size, so that every record offset fits into a word.
inline constexpr std::uint64_t kSegmentBytesMax = kRecordAlignment << 30U;

}  // namespace stoker::domain
