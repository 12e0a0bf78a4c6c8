#include "common/domain/manifest.h"

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/wire.h"

namespace stoker::domain {

namespace {

struct Record {
    std::uint64_t size_bytes = 0;
    std::uint64_t key_offset = 0;
    std::uint32_t key_bytes = 0;
    std::uint16_t etag_bytes = 0;
    std::int32_t label = kNoLabel;
};

Record read_record(std::span<const std::byte> bytes) {
    WireReader in{bytes};
    Record record;
    record.size_bytes = in.get<std::uint64_t>();
    record.key_offset = in.get<std::uint64_t>();
    record.key_bytes = in.get<std::uint32_t>();
    record.etag_bytes = in.get<std::uint16_t>();
    in.get<std::uint16_t>();
    record.label = in.get<std::int32_t>();
    return record;
}

}  // namespace

Result<ManifestView> ManifestView::open(std::span<const std::byte> bytes, bool verify_checksum) {
    if (bytes.size() < kManifestHeaderBytes + kManifestChecksumBytes) {
        return fail(ErrorCode::kCorruption, "manifest is shorter than its header");
    }
    WireReader in{bytes};
    if (in.get<std::uint64_t>() != kManifestMagic) {
        return fail(ErrorCode::kCorruption, "not a manifest file");
    }
    if (const auto version = in.get<std::uint32_t>(); version != kManifestFormatVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "manifest format version {}, this program reads version {}",
                version,
                kManifestFormatVersion));
    }
    ManifestView view;
    view.label_count_ = in.get<std::uint32_t>();
    view.sample_count_ = in.get<std::uint64_t>();
    view.revision_ = RevisionId{in.get<std::uint64_t>()};
    view.total_bytes_ = Bytes{in.get<std::uint64_t>()};
    view.largest_sample_bytes_ = in.get<std::uint64_t>();
    const auto pool_bytes = in.get<std::uint64_t>();

    const Bytes wanted = Bytes{kManifestHeaderBytes + kManifestChecksumBytes} +
                         Bytes{kManifestRecordBytes} * view.sample_count_ +
                         Bytes{kLabelEntryBytes} * view.label_count_ + Bytes{pool_bytes};
    if (wanted != Bytes{bytes.size()}) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format("manifest has {} bytes, its header says {}", bytes.size(), wanted.count()));
    }
    const auto body = bytes.first(bytes.size() - kManifestChecksumBytes);
    if (verify_checksum &&
        WireReader{bytes.subspan(body.size())}.get<std::uint32_t>() != crc32c(body)) {
        return fail(ErrorCode::kCorruption, "manifest does not match its checksum");
    }
    view.records_ = bytes.subspan(kManifestHeaderBytes, view.sample_count_ * kManifestRecordBytes);
    view.labels_ = bytes.subspan(
        kManifestHeaderBytes + view.records_.size(), view.label_count_ * kLabelEntryBytes);
    view.pool_ = body.subspan(body.size() - pool_bytes);
    return view;
}

SampleInfo ManifestView::sample(SampleId id) const {
    STOKER_CHECK(id.value() < sample_count_, "sample id is outside the manifest");
    const Record record =
        read_record(records_.subspan(id.value() * kManifestRecordBytes, kManifestRecordBytes));
    SampleInfo info;
    info.id = id;
    info.key = pool_text(record.key_offset, record.key_bytes);
    info.etag = pool_text(record.key_offset + record.key_bytes, record.etag_bytes);
    info.size_bytes = record.size_bytes;
    info.label = record.label;
    return info;
}

std::uint64_t ManifestView::size_bytes(SampleId id) const {
    STOKER_CHECK(id.value() < sample_count_, "sample id is outside the manifest");
    return WireReader{records_.subspan(id.value() * kManifestRecordBytes, sizeof(std::uint64_t))}
        .get<std::uint64_t>();
}

std::string_view ManifestView::label_name(std::uint32_t label) const {
    STOKER_CHECK(label < label_count_, "label is outside the manifest");
    WireReader in{labels_.subspan(label * kLabelEntryBytes, kLabelEntryBytes)};
    const auto offset = in.get<std::uint32_t>();
    return pool_text(offset, in.get<std::uint32_t>());
}

// If open() did not verify the checksum, `offset` may be damaged: then the function returns an
// empty text, and it never reads out of bounds.
std::string_view ManifestView::pool_text(std::uint64_t offset, std::size_t length) const {
    if (offset > pool_.size() || length > pool_.size() - offset) {
        return {};
    }
    return {reinterpret_cast<const char*>(pool_.data()) + offset, length};
}

std::string to_string(RevisionId revision) {
    return fmt::format("{:016x}", revision.value());
}

}  // namespace stoker::domain
