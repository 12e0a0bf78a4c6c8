#include "common/domain/manifest_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "common/base/crc32c.h"
#include "common/base/wire.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_rules.h"
#include "common/domain/range_place.h"

namespace stoker::domain {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 16U;

// Upper limit of the sum over all objects of a dataset; sidecar reports have the same limit
// (operator/sidecars/report_rules.h).
constexpr Bytes kDatasetBytesMax{std::uint64_t{1} << 56U};

Status add_size(const Listing::Entry& object, Bytes& sum) {
    sum = sum + Bytes{object.size_bytes};  // saturates
    if (sum > kDatasetBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the objects up to '{}' ({} bytes) have more than {} bytes together, the most that "
                "a dataset may have",
                object.key,
                object.size_bytes,
                kDatasetBytesMax.count()));
    }
    return {};
}

Status check_names(const Listing& sorted) {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const Listing::Entry object = sorted[i];
        if (object.key.empty()) {
            return fail(ErrorCode::kInvalidArgument, "an object has an empty key");
        }
        if (object.etag.empty()) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "object '{}' has no ETag, so a change of it could not be seen", object.key));
        }
        if (i > 0 && sorted[i - 1].key == object.key) {
            const bool is_tar = parse_range_place(object.key, object.etag).has_value();
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "object '{}' is listed twice{}",
                    object.key,
                    is_tar ? ": the members of a sample must follow each other in its tar shard"
                           : ""));
        }
    }
    return {};
}

}  // namespace

// Collects numbers and texts into pieces, adds the checksum, and remembers the sink's first error.
class ManifestWriter::Output {
public:
    explicit Output(const Sink& sink)
        : sink_(sink) {}

    template <WireNumber T>
    Output& put(T value) {
        piece_.put(value);
        return *this;
    }

    void put_text(std::string_view text) { piece_.put_text(text); }

    void pad_header() { piece_.pad_to(kManifestHeaderBytes); }

    // Passes a full piece to the sink; call it between two rows. False: the sink has failed.
    bool pass_on(std::size_t from = kPieceBytes) {
        if (piece_.size() >= from) {
            checksum_ = crc32c(piece_.view(), checksum_);
            status_ = sink_(piece_.view());
            piece_ = {};
        }
        return status_.has_value();
    }

    Status end() {
        if (pass_on(1)) {
            put(checksum_);
            pass_on(1);
        }
        return std::move(status_);
    }

private:
    const Sink& sink_;
    WireWriter piece_;
    std::uint32_t checksum_ = 0;
    Status status_;
};

Result<ManifestWriter> ManifestWriter::create(Listing listing) {
    if (listing.empty()) {
        return fail(
            ErrorCode::kInvalidArgument, "the dataset is empty: no object under its prefix");
    }
    listing.sort();
    STOKER_TRY_VOID(check_names(listing));
    ManifestWriter writer{std::move(listing)};
    STOKER_TRY_VOID(writer.measure());
    if (writer.text_bytes_ + writer.label_bytes_ > std::numeric_limits<std::uint32_t>::max()) {
        return fail(ErrorCode::kInvalidArgument, "the keys of the dataset exceed 4 GiB");
    }
    return writer;
}

Status ManifestWriter::measure() {
    ManifestDigest digest;
    for (std::size_t i = 0; i < listing_.size(); ++i) {
        const Listing::Entry object = listing_[i];
        digest.add(object.key);
        digest.add(object.size_bytes);
        digest.add(object.etag);
        STOKER_TRY_VOID(add_size(object, total_bytes_));
        largest_ = std::max(largest_, object.size_bytes);
        text_bytes_ += object.key.size() + object.etag.size();
        if (const auto folder = label_folder(object.key, object.etag); !folder.empty()) {
            labels_.emplace(folder, 0);
        }
    }
    revision_ = RevisionId{digest.value()};
    std::int32_t next = 0;
    for (auto& [name, number] : labels_) {
        number = next++;
        label_bytes_ += name.size();
    }
    return {};
}

std::uint64_t ManifestWriter::file_bytes() const {
    return kManifestHeaderBytes + listing_.size() * kManifestRecordBytes +
           labels_.size() * kLabelEntryBytes + text_bytes_ + label_bytes_ + kManifestChecksumBytes;
}

Status ManifestWriter::write(const Sink& sink) const {
    Output out{sink};
    write_header(out);
    write_records(out);
    write_labels(out);
    write_pool(out);
    return out.end();
}

void ManifestWriter::write_header(Output& out) const {
    out.put(kManifestMagic)
        .put(kManifestFormatVersion)
        .put(static_cast<std::uint32_t>(labels_.size()))
        .put(std::uint64_t{listing_.size()})
        .put(revision_.value())
        .put(total_bytes_.count())
        .put(largest_)
        .put(text_bytes_ + label_bytes_)
        .pad_header();
}

void ManifestWriter::write_records(Output& out) const {
    std::uint64_t key_offset = 0;
    for (std::size_t i = 0; i < listing_.size() && out.pass_on(); ++i) {
        const Listing::Entry object = listing_[i];
        const auto label = labels_.find(label_folder(object.key, object.etag));
        out.put(object.size_bytes)
            .put(key_offset)
            .put(static_cast<std::uint32_t>(object.key.size()))
            .put(static_cast<std::uint16_t>(object.etag.size()))
            .put(std::uint16_t{0})
            .put(label == labels_.end() ? kNoLabel : label->second)
            .put(std::uint32_t{0})   // checksum of the sample at the origin, 0: not known
            .put(std::uint64_t{0});  // offset inside the origin object, for tar members and chunks
        key_offset += object.key.size() + object.etag.size();
    }
}

void ManifestWriter::write_labels(Output& out) const {
    std::uint64_t name_offset = text_bytes_;
    for (const auto& [name, number] : labels_) {
        if (!out.pass_on()) {
            return;
        }
        out.put(static_cast<std::uint32_t>(name_offset))
            .put(static_cast<std::uint32_t>(name.size()));
        name_offset += name.size();
    }
}

void ManifestWriter::write_pool(Output& out) const {
    for (std::size_t i = 0; i < listing_.size() && out.pass_on(); ++i) {
        const Listing::Entry object = listing_[i];
        out.put_text(object.key);
        out.put_text(object.etag);
    }
    for (const auto& [name, number] : labels_) {
        if (!out.pass_on()) {
            return;
        }
        out.put_text(name);
    }
}

Result<std::vector<std::byte>> encode_manifest(const std::vector<ListedObject>& objects) {
    STOKER_TRY(auto listing, Listing::of(objects));
    STOKER_TRY(const auto writer, ManifestWriter::create(std::move(listing)));
    std::vector<std::byte> file;
    file.reserve(writer.file_bytes());
    STOKER_TRY_VOID(writer.write([&file](std::span<const std::byte> piece) {
        file.insert(file.end(), piece.begin(), piece.end());
        return Status{};
    }));
    return file;
}

}  // namespace stoker::domain
