#include "common/domain/segment_format.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/crc32c.h"
#include "common/base/wire.h"

namespace stoker::domain {

namespace {

constexpr std::uint64_t kSegmentMagic = 0x31474553524B5453ULL;  // "STKRSEG1"
constexpr std::uint32_t kRecordMagic = 0x44524352U;             // "RCRD"
constexpr std::uint32_t kFooterMagic = 0x544F4F46U;             // "FOOT"
constexpr std::size_t kHeaderChecksumOffset = 60;
constexpr std::size_t kFooterEntryBytes = 24;

// A segment's or a record's header, made from its fields: 64 bytes, whose last four are the
// checksum of the others.
template <std::size_t Size>
std::array<std::byte, Size> sealed_header(WireWriter fields) {
    fields.pad_to(kHeaderChecksumOffset);
    fields.put(crc32c(fields.view()));
    std::array<std::byte, Size> out{};
    std::ranges::copy(fields.view(), out.begin());
    return out;
}

bool checksum_matches(std::span<const std::byte> header) {
    const auto stored = WireReader{header.subspan(kHeaderChecksumOffset)}.get<std::uint32_t>();
    return stored == crc32c(header.first(kHeaderChecksumOffset));
}

}  // namespace

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header) {
    WireWriter out;
    out.put(kSegmentMagic)
        .put(kSegmentFormatVersion)
        .put(static_cast<std::uint32_t>(header.segment_class))
        .put(header.seq.value())
        .put(std::uint32_t{0})
        .put(header.revision.value())
        .put(header.capacity_bytes);
    return sealed_header<kSegmentHeaderBytes>(std::move(out));
}

Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes) {
    if (bytes.size() < kSegmentHeaderBytes) {
        return fail(ErrorCode::kCorruption, "segment is shorter than its header");
    }
    const auto header = bytes.first(kSegmentHeaderBytes);
    WireReader in{header};
    if (in.get<std::uint64_t>() != kSegmentMagic) {
        return fail(ErrorCode::kCorruption, "not a segment file");
    }
    if (const auto version = in.get<std::uint32_t>(); version != kSegmentFormatVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "segment format version {}, this program reads version {}",
                version,
                kSegmentFormatVersion));
    }
    if (!checksum_matches(header)) {
        return fail(ErrorCode::kCorruption, "segment header does not match its checksum");
    }
    SegmentHeader out;
    out.segment_class = static_cast<SegmentClass>(in.get<std::uint32_t>());
    out.seq = SegmentSeq{in.get<std::uint32_t>()};
    in.get<std::uint32_t>();
    out.revision = RevisionId{in.get<std::uint64_t>()};
    out.capacity_bytes = in.get<std::uint64_t>();
    return out;
}

std::array<std::byte, kRecordHeaderBytes> encode_record_header(const RecordHeader& header) {
    WireWriter out;
    out.put(kRecordMagic)
        .put(header.seq.value())
        .put(header.sample.value())
        .put(header.payload_bytes)
        .put(header.payload_crc32c);
    return sealed_header<kRecordHeaderBytes>(std::move(out));
}

std::optional<RecordHeader> decode_record_header(std::span<const std::byte> bytes, SegmentSeq seq) {
    if (bytes.size() < kRecordHeaderBytes || !checksum_matches(bytes.first(kRecordHeaderBytes))) {
        return std::nullopt;
    }
    WireReader in{bytes.first(kRecordHeaderBytes)};
    if (in.get<std::uint32_t>() != kRecordMagic || in.get<std::uint32_t>() != seq.value()) {
        return std::nullopt;
    }
    RecordHeader out;
    out.seq = seq;
    out.sample = SampleId{in.get<std::uint64_t>()};
    out.payload_bytes = in.get<std::uint64_t>();
    out.payload_crc32c = in.get<std::uint32_t>();
    return out;
}

std::vector<std::byte> encode_footer(std::span<const FooterEntry> entries, SegmentSeq seq) {
    WireWriter out;
    for (const FooterEntry& entry : entries) {
        out.put(entry.sample.value()).put(entry.record_offset).put(entry.payload_bytes);
    }
    const std::size_t unpadded = entries.size() * kFooterEntryBytes + kFooterTailBytes;
    const std::size_t total =
        (unpadded + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
    constexpr std::size_t kTrailer = 8 + 8 + 4 + 4 + 4;  // total, count, seq, crc, magic
    out.pad_to(total - kTrailer);
    out.put(static_cast<std::uint64_t>(total))
        .put(static_cast<std::uint64_t>(entries.size()))
        .put(seq.value());
    out.put(crc32c(out.view())).put(kFooterMagic);
    return std::move(out).take();
}

std::optional<std::uint64_t> footer_bytes(std::span<const std::byte> tail) {
    constexpr std::size_t kTrailer = 28;
    if (tail.size() < kTrailer) {
        return std::nullopt;
    }
    WireReader in{tail.last(kTrailer)};
    const auto total = in.get<std::uint64_t>();
    const auto count = in.get<std::uint64_t>();
    in.get_bytes(8);
    const bool sized = total % kRecordAlignment == 0 && total >= kFooterTailBytes &&
                       count <= total / kFooterEntryBytes &&
                       count * kFooterEntryBytes + kFooterTailBytes <= total;
    if (in.get<std::uint32_t>() != kFooterMagic || !sized) {
        return std::nullopt;
    }
    return total;
}

Result<std::vector<FooterEntry>> decode_footer(std::span<const std::byte> footer, SegmentSeq seq) {
    if (footer_bytes(footer) != footer.size()) {
        return fail(ErrorCode::kCorruption, "segment footer has a wrong length");
    }
    const std::size_t checked = footer.size() - 8;
    WireReader trailer{footer.subspan(footer.size() - 20)};
    const auto count = trailer.get<std::uint64_t>();
    if (trailer.get<std::uint32_t>() != seq.value()) {
        return fail(ErrorCode::kCorruption, "segment footer belongs to another segment");
    }
    if (trailer.get<std::uint32_t>() != crc32c(footer.first(checked))) {
        return fail(ErrorCode::kCorruption, "segment footer does not match its checksum");
    }
    std::vector<FooterEntry> entries;
    entries.reserve(count);
    WireReader in{footer};
    for (std::uint64_t i = 0; i < count; ++i) {
        FooterEntry entry;
        entry.sample = SampleId{in.get<std::uint64_t>()};
        entry.record_offset = in.get<std::uint64_t>();
        entry.payload_bytes = in.get<std::uint64_t>();
        entries.push_back(entry);
    }
    return entries;
}

}  // namespace stoker::domain
