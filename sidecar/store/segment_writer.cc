#include "sidecar/store/segment_writer.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

constexpr std::array<std::byte, domain::kRecordAlignment> kZeroes{};

// The size of encode_footer()'s result, in bytes.
constexpr std::uint64_t footer_bytes_for(std::uint64_t records) {
    constexpr std::uint64_t kEntryBytes = 24;
    const std::uint64_t unpadded = records * kEntryBytes + domain::kFooterTailBytes;
    return (unpadded + domain::kRecordAlignment - 1) / domain::kRecordAlignment *
           domain::kRecordAlignment;
}

}  // namespace

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(
    Device& device, const std::string& directory, const domain::SegmentHeader& header) {
    const auto path = join_path(directory, domain::segment_file(header.seq));
    STOKER_TRY(auto file, device.create(path));
    const auto bytes = domain::encode_segment_header(header);
    const std::array<DeviceFile::ConstBuffer, 1> parts{bytes};
    if (Status status = file->write(0, parts); !status.has_value()) {
        static_cast<void>(device.unlink(path));  // recovery removes a leftover
        return fail(std::move(status).error());
    }
    return std::unique_ptr<SegmentWriter>{new SegmentWriter(std::move(file), header)};
}

std::uint64_t SegmentWriter::capacity_for(std::uint64_t payload_bytes) {
    return domain::kSegmentHeaderBytes + domain::record_bytes(payload_bytes) + footer_bytes_for(1);
}

bool SegmentWriter::fits(std::uint64_t payload_bytes) const {
    return !is_broken() && reserved_end_ + domain::record_bytes(payload_bytes) +
                                   footer_bytes_for(records_reserved_ + 1) <=
                               header_.capacity_bytes;
}

std::uint64_t SegmentWriter::reserve(domain::SampleId sample, std::uint64_t payload_bytes) {
    STOKER_CHECK(fits(payload_bytes), "reserve() of a record that does not fit");
    const std::uint64_t offset = reserved_end_;
    pending_.push_back({{sample, offset, payload_bytes}, false});
    reserved_end_ += domain::record_bytes(payload_bytes);
    ++records_reserved_;
    return offset;
}

Status SegmentWriter::write(
    std::uint64_t record_offset,
    domain::SampleId sample,
    std::span<const std::byte> payload,
    std::uint32_t payload_crc32c) {
    const auto head =
        domain::encode_record_header({sample, header_.seq, payload.size(), payload_crc32c});
    const auto padding =
        domain::record_bytes(payload.size()) - domain::kRecordHeaderBytes - payload.size();
    const std::array<DeviceFile::ConstBuffer, 3> parts{
        head, payload, std::span{kZeroes}.first(padding)};
    return file_->write(record_offset, parts);
}

Status SegmentWriter::allocate() {
    return file_->allocate(header_.capacity_bytes);
}

Status SegmentWriter::write_part(
    std::uint64_t record_offset, std::uint64_t payload_offset, std::span<const std::byte> part) {
    const std::array<DeviceFile::ConstBuffer, 1> parts{part};
    return file_->write(record_offset + domain::kRecordHeaderBytes + payload_offset, parts);
}

Status SegmentWriter::write_head(
    std::uint64_t record_offset,
    domain::SampleId sample,
    std::uint64_t payload_bytes,
    std::uint32_t payload_crc32c) {
    const auto head =
        domain::encode_record_header({sample, header_.seq, payload_bytes, payload_crc32c});
    const std::array<DeviceFile::ConstBuffer, 1> parts{head};
    return file_->write(record_offset, parts);
}

std::vector<domain::FooterEntry> SegmentWriter::complete(
    std::uint64_t record_offset, bool written) {
    const auto at = std::ranges::find(
        pending_, record_offset, [](const Pending& p) { return p.entry.record_offset; });
    STOKER_CHECK(at != pending_.end() && !at->completed, "complete() without reserve()");
    at->completed = true;
    if (!written) {
        failed_from_ = std::min(failed_from_, record_offset);
    }
    std::vector<domain::FooterEntry> fresh;
    while (!pending_.empty() && pending_.front().completed) {
        const domain::FooterEntry entry = pending_.front().entry;
        pending_.pop_front();
        if (!is_failed(entry.record_offset)) {
            committed_end_ = entry.record_offset + domain::record_bytes(entry.payload_bytes);
            committed_.push_back(entry);
            fresh.push_back(entry);
        }
    }
    return fresh;
}

Status SegmentWriter::seal() {
    STOKER_CHECK(is_idle() && footer_bytes_ == 0, "seal() of a segment that is not idle, or twice");
    if (is_broken()) {
        STOKER_TRY_VOID(file_->truncate(committed_end_));
    }
    const auto footer = domain::encode_footer(committed_, header_.seq);
    const std::array<DeviceFile::ConstBuffer, 1> parts{footer};
    STOKER_TRY_VOID(file_->write(committed_end_, parts));
    footer_bytes_ = footer.size();
    return {};
}

}  // namespace stoker::sidecar
