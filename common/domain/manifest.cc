#include "common/domain/manifest.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/wire.h"
#include "common/domain/manifest_rules.h"

namespace stoker::domain {

namespace {

constexpr std::uint64_t kManifestMagic = 0x3146494E414D4B53ULL;  // "SKMANIF1"
constexpr std::size_t kLabelEntryBytes = 8;
constexpr std::size_t kChecksumBytes = 4;

std::map<std::string_view, std::int32_t> number_labels(const std::vector<ListedObject>& objects) {
    std::map<std::string_view, std::int32_t> labels;
    for (const ListedObject& object : objects) {
        if (const auto folder = parent_folder(object.key); !folder.empty()) {
            labels.emplace(folder, 0);
        }
    }
    std::int32_t next = 0;
    for (auto& [name, number] : labels) {
        number = next++;
    }
    return labels;
}

// Sum over all objects of a dataset; the same limit holds for sidecar reports
// (operator/sidecars/report_rules.h).
constexpr Bytes kDatasetBytesMax{std::uint64_t{1} << 56U};

Status check_sizes(const std::vector<ListedObject>& objects) {
    Bytes sum{};
    for (const ListedObject& object : objects) {
        sum = sum + Bytes{object.size_bytes};  // saturates
        if (sum > kDatasetBytesMax) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "the objects up to '{}' ({} bytes) have more than {} bytes together, the most "
                    "that a dataset may have",
                    object.key,
                    object.size_bytes,
                    kDatasetBytesMax.count()));
        }
    }
    return {};
}

Status check_objects(const std::vector<ListedObject>& sorted) {
    if (sorted.empty()) {
        return fail(
            ErrorCode::kInvalidArgument, "the dataset is empty: no object under its prefix");
    }
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const ListedObject& object = sorted[i];
        if (object.key.empty()) {
            return fail(ErrorCode::kInvalidArgument, "an object has an empty key");
        }
        if (object.etag.empty()) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "object '{}' has no ETag, so a change of it could not be seen", object.key));
        }
        if (object.etag.size() > UINT16_MAX) {
            return fail(
                ErrorCode::kInvalidArgument, fmt::format("ETag of '{}' is too long", object.key));
        }
        if (i > 0 && sorted[i - 1].key == object.key) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("object '{}' is listed twice", object.key));
        }
    }
    return check_sizes(sorted);
}

struct Totals {
    ManifestDigest digest;
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;
};

Totals add_up(const std::vector<ListedObject>& objects) {
    Totals totals;
    for (const ListedObject& object : objects) {
        totals.digest.add(object.key);
        totals.digest.add(object.size_bytes);
        totals.digest.add(object.etag);
        totals.bytes = (Bytes{totals.bytes} + Bytes{object.size_bytes}).count();
        totals.largest = std::max(totals.largest, object.size_bytes);
    }
    return totals;
}

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

void put_record(WireWriter& out, const Record& record) {
    out.put(record.size_bytes)
        .put(record.key_offset)
        .put(record.key_bytes)
        .put(record.etag_bytes)
        .put(std::uint16_t{0})
        .put(record.label)
        .put(std::uint32_t{0})   // checksum of the sample at the origin, 0: not known
        .put(std::uint64_t{0});  // offset inside the origin object, for tar members and chunks
}

}  // namespace

Result<std::vector<std::byte>> encode_manifest(std::vector<ListedObject> objects) {
    std::ranges::sort(objects, {}, &ListedObject::key);
    STOKER_TRY_VOID(check_objects(objects));
    const auto labels = number_labels(objects);
    const Totals totals = add_up(objects);

    WireWriter records;
    WireWriter pool;
    for (const ListedObject& object : objects) {
        Record record;
        record.size_bytes = object.size_bytes;
        record.key_offset = pool.size();
        record.key_bytes = static_cast<std::uint32_t>(object.key.size());
        record.etag_bytes = static_cast<std::uint16_t>(object.etag.size());
        if (const auto label = labels.find(parent_folder(object.key)); label != labels.end()) {
            record.label = label->second;
        }
        pool.put_text(object.key).put_text(object.etag);
        put_record(records, record);
    }
    WireWriter label_table;
    for (const auto& [name, number] : labels) {
        label_table.put(static_cast<std::uint32_t>(pool.size()))
            .put(static_cast<std::uint32_t>(name.size()));
        pool.put_text(name);
    }
    if (pool.size() > UINT32_MAX) {
        return fail(ErrorCode::kInvalidArgument, "the keys of the dataset exceed 4 GiB");
    }

    WireWriter out;
    out.put(kManifestMagic)
        .put(kManifestFormatVersion)
        .put(static_cast<std::uint32_t>(labels.size()))
        .put(static_cast<std::uint64_t>(objects.size()))
        .put(totals.digest.value())
        .put(totals.bytes)
        .put(totals.largest)
        .put(static_cast<std::uint64_t>(pool.size()));
    out.pad_to(kManifestHeaderBytes);
    out.put_bytes(records.view()).put_bytes(label_table.view()).put_bytes(pool.view());
    out.put(crc32c(out.view()));
    return std::move(out).take();
}

Result<ManifestView> ManifestView::open(std::span<const std::byte> bytes, bool verify_checksum) {
    if (bytes.size() < kManifestHeaderBytes + kChecksumBytes) {
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

    const Bytes wanted = Bytes{kManifestHeaderBytes + kChecksumBytes} +
                         Bytes{kManifestRecordBytes} * view.sample_count_ +
                         Bytes{kLabelEntryBytes} * view.label_count_ + Bytes{pool_bytes};
    if (wanted != Bytes{bytes.size()}) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format("manifest has {} bytes, its header says {}", bytes.size(), wanted.count()));
    }
    const auto body = bytes.first(bytes.size() - kChecksumBytes);
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

// Without the checksum, an offset may be damaged: the result is an empty text, never a read out of
// bounds.
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
