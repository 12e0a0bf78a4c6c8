#include "sidecar/store/segment_scan.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "common/base/crc32c.h"

namespace stoker::sidecar {

namespace {

using domain::FooterEntry;
using domain::kRecordHeaderBytes;
using domain::kSegmentHeaderBytes;
using domain::RecordHeader;

// Sequential reads in large blocks. A span is valid until the next call.
class ReadAhead {
public:
    // `bytes_wanted`: all bytes that will be read; limits the buffer.
    ReadAhead(DeviceFile& file, std::uint64_t bytes_wanted)
        : file_(file),
          piece_bytes_(std::clamp<std::uint64_t>(bytes_wanted, kRecordHeaderBytes, 1U << 20U)) {}

    // The largest number of bytes that one view() can return.
    [[nodiscard]] std::uint64_t piece_bytes() const { return piece_bytes_; }

    // `count` bytes (at most piece_bytes()) from `offset`; fewer only at the end of the file.
    Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t count) {
        if (offset < start_ || offset + count > start_ + filled_) {
            buffer_.resize(piece_bytes_);  // allocated here: most segments need only their footer
            start_ = offset;
            filled_ = 0;  // so that the buffer counts as invalid if the read fails
            STOKER_TRY(filled_, file_.read(offset, buffer_));
        }
        const std::uint64_t skip = offset - start_;
        return std::span<const std::byte>{buffer_}.subspan(skip, std::min(count, filled_ - skip));
    }

private:
    DeviceFile& file_;
    const std::uint64_t piece_bytes_;
    std::vector<std::byte> buffer_;
    std::uint64_t start_ = 0;
    std::uint64_t filled_ = 0;
};

Result<std::optional<RecordHeader>> record_at(
    ReadAhead& reader, std::uint64_t offset, domain::SegmentSeq seq) {
    STOKER_TRY(const auto bytes, reader.view(offset, kRecordHeaderBytes));
    return domain::decode_record_header(bytes, seq);
}

Result<bool> payload_matches(
    ReadAhead& reader, std::uint64_t record_offset, const RecordHeader& head) {
    std::uint32_t checksum = 0;
    std::uint64_t offset = record_offset + kRecordHeaderBytes;
    const std::uint64_t end = offset + head.payload_bytes;
    while (offset < end) {
        const auto want = std::min(end - offset, reader.piece_bytes());
        STOKER_TRY(const auto piece, reader.view(offset, want));
        if (piece.size() < want) {
            return false;
        }
        checksum = crc32c(piece, checksum);
        offset += want;
    }
    return checksum == head.payload_crc32c;
}

// Whether the segment has, at the footer entry's offset, a record with the entry's sample and
// length and an undamaged payload.
Result<bool> record_matches(ReadAhead& reader, domain::SegmentSeq seq, const FooterEntry& record) {
    STOKER_TRY(const auto head, record_at(reader, record.record_offset, seq));
    if (!head.has_value() || head->sample != record.sample ||
        head->payload_bytes != record.payload_bytes) {
        return false;
    }
    return payload_matches(reader, record.record_offset, *head);
}

Error damaged(domain::SegmentSeq seq, const FooterEntry& record) {
    return {
        ErrorCode::kCorruption,
        fmt::format(
            "sample {} in segment {} does not match its checksum",
            record.sample.value(),
            seq.value())};
}

class Scanner {
public:
    Scanner(
        DeviceFile& file,
        std::uint64_t file_bytes,
        domain::SegmentSeq seq,
        const domain::ManifestView& manifest)
        : file_(file),
          seq_(seq),
          manifest_(manifest),
          reader_(file, file_bytes) {
        contents_.file_bytes = file_bytes;
    }

    Result<SegmentContents> run(Trust trust) {
        STOKER_TRY(auto footer, read_footer());
        contents_.sealed = footer.has_value();
        if (!contents_.sealed) {
            STOKER_TRY_VOID(scan_headers());
        } else {
            STOKER_TRY_VOID(check_footer(*footer, trust));
        }
        return std::move(contents_);
    }

private:
    // Reads the footer. nullopt: the segment is not sealed, or its footer is damaged.
    Result<std::optional<std::vector<FooterEntry>>> read_footer() {
        using Footer = std::optional<std::vector<FooterEntry>>;
        if (contents_.file_bytes < kSegmentHeaderBytes + domain::kFooterTailBytes) {
            return Footer{};
        }
        std::vector<std::byte> bytes(domain::kFooterTailBytes);
        STOKER_TRY_VOID(read_exactly(contents_.file_bytes - bytes.size(), bytes));
        const auto total = domain::footer_bytes(bytes);
        if (!total.has_value() || *total > contents_.file_bytes - kSegmentHeaderBytes) {
            return Footer{};
        }
        bytes.resize(*total);
        STOKER_TRY_VOID(read_exactly(contents_.file_bytes - *total, bytes));
        auto entries = domain::decode_footer(bytes, seq_);
        records_end_ = contents_.file_bytes - *total;
        return entries.has_value() ? Footer{*std::move(entries)} : Footer{};
    }

    Status read_exactly(std::uint64_t offset, std::span<std::byte> out) {
        STOKER_TRY(const std::size_t got, file_.read(offset, out));
        std::ranges::fill(
            out.subspan(got), std::byte{0});  // truncated meanwhile: zeroes are not a valid footer
        return {};
    }

    Status check_footer(const std::vector<FooterEntry>& entries, Trust trust) {
        for (const FooterEntry& entry : entries) {
            bool good = is_ours(entry.sample, entry.payload_bytes) &&
                        entry.record_offset % domain::kRecordAlignment == 0 &&
                        lies_within(entry, records_end_);
            if (good && trust == Trust::kChecksums) {
                STOKER_TRY(good, record_matches(reader_, seq_, entry));
            }
            note(entry, good);
        }
        return {};
    }

    Status scan_headers() {
        std::uint64_t offset = kSegmentHeaderBytes;
        while (offset < contents_.file_bytes) {
            STOKER_TRY(const auto head, record_at(reader_, offset, seq_));
            if (!head.has_value()) {
                break;
            }
            const FooterEntry entry{head->sample, offset, head->payload_bytes};
            if (!lies_within(entry, contents_.file_bytes)) {
                note(entry, false);
                break;
            }
            bool good = is_ours(head->sample, head->payload_bytes);
            if (good) {
                STOKER_TRY(good, payload_matches(reader_, offset, *head));
            }
            note(entry, good);
            offset += domain::record_bytes(head->payload_bytes);
        }
        return {};
    }

    void note(const FooterEntry& entry, bool good) {
        if (good) {
            contents_.records.push_back(entry);
        } else {
            ++contents_.records_dropped;
        }
    }

    [[nodiscard]] bool is_ours(domain::SampleId sample, std::uint64_t payload_bytes) const {
        return sample.value() < manifest_.sample_count() &&
               manifest_.size_bytes(sample) == payload_bytes;
    }

    // Whether the record lies in the file, at an offset that a residency word can hold; without
    // overflow.
    static bool lies_within(const FooterEntry& entry, std::uint64_t end) {
        return entry.record_offset >= kSegmentHeaderBytes &&
               entry.record_offset < domain::kSegmentBytesMax && entry.record_offset <= end &&
               entry.payload_bytes <= end &&
               kRecordHeaderBytes + entry.payload_bytes <= end - entry.record_offset;
    }

    DeviceFile& file_;
    const domain::SegmentSeq seq_;
    const domain::ManifestView& manifest_;
    ReadAhead reader_;
    SegmentContents contents_;
    std::uint64_t records_end_ = 0;
};

}  // namespace

Result<domain::SegmentHeader> read_segment_header(DeviceFile& file) {
    std::vector<std::byte> bytes(kSegmentHeaderBytes);
    STOKER_TRY(const std::size_t got, file.read(0, bytes));
    return domain::decode_segment_header(std::span{bytes}.first(got));
}

Result<SegmentContents> scan_segment(
    DeviceFile& file, domain::SegmentSeq seq, const domain::ManifestView& manifest, Trust trust) {
    STOKER_TRY(const std::uint64_t file_bytes, file.size_bytes());
    return Scanner{file, file_bytes, seq, manifest}.run(trust);
}

Status check_record(DeviceFile& file, domain::SegmentSeq seq, const domain::FooterEntry& record) {
    ReadAhead reader{file, kRecordHeaderBytes + record.payload_bytes};
    STOKER_TRY(const bool good, record_matches(reader, seq, record));
    return good ? Status{} : Status{fail(damaged(seq, record))};
}

Result<RecordBytes> read_record(
    DeviceFile& file, domain::SegmentSeq seq, const domain::FooterEntry& record) {
    std::vector<std::byte> bytes(kRecordHeaderBytes + record.payload_bytes);
    STOKER_TRY(const std::size_t got, file.read(record.record_offset, bytes));
    const auto head = domain::decode_record_header(std::span{bytes}.first(got), seq);
    const auto payload = std::span{bytes}.subspan(kRecordHeaderBytes);
    if (got < bytes.size() || !head.has_value() || head->sample != record.sample ||
        head->payload_bytes != record.payload_bytes || head->payload_crc32c != crc32c(payload)) {
        return fail(damaged(seq, record));
    }
    return RecordBytes{std::move(bytes), head->payload_crc32c};
}

}  // namespace stoker::sidecar
