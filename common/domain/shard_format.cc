#include "common/domain/shard_format.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/domain/fixed_rows.h"
#include "common/domain/megatron_index.h"
#include "common/domain/tar_index.h"
#include "common/domain/tfrecord_index.h"

namespace stoker::domain {

namespace {

bool is_compressed_tar(std::string_view key) {
    constexpr std::array<std::string_view, 8> kEndings{
        ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tar.lz4", ".tbz2", ".txz"};
    return std::ranges::any_of(kEndings, [&](std::string_view it) { return key.ends_with(it); });
}

bool is_compressed_tfrecord(std::string_view key) {
    constexpr std::array<std::string_view, 4> kEndings{".gz", ".zlib", ".zst", ".bz2"};
    return std::ranges::any_of(kEndings, [&](std::string_view it) {
        return key.ends_with(it) && is_tfrecord_shard(key.substr(0, key.size() - it.size()));
    });
}

bool is_compressed(const ShardFormat& format, std::string_view key) {
    return (format.format == SampleFormat::kTar && is_compressed_tar(key)) ||
           (format.format == SampleFormat::kTfRecord && is_compressed_tfrecord(key));
}

bool is_shard(const ShardFormat& format, std::string_view key) {
    switch (format.format) {
        case SampleFormat::kTar:
            return key.ends_with(".tar");
        case SampleFormat::kRecords:
            return key.ends_with(format.rows.suffix);
        case SampleFormat::kMegatron:
            return key.ends_with(kMegatronData) || key.ends_with(kMegatronIndex);
        case SampleFormat::kTfRecord:
            return is_tfrecord_shard(key);
        default:
            return false;
    }
}

std::string_view wanted_objects(SampleFormat format) {
    switch (format) {
        case SampleFormat::kTar:
            return "no object whose key ends in .tar";
        case SampleFormat::kMegatron:
            return "no pair of objects NAME.bin and NAME.idx";
        case SampleFormat::kTfRecord:
            return "no object whose key ends in .tfrecord, .tfrecords, .tfrec or -00000-of-00001";
        default:
            return "no object whose key ends in records.suffix";
    }
}

Status check_rows(const ShardFormat& format) {
    const RecordRows& rows = format.rows;
    if (format.format == SampleFormat::kRecords &&
        (rows.bytes == 0 || rows.bytes > RecordRows::kBytesMax)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "records.bytes is {}, and must be between 1 and {}",
                rows.bytes,
                RecordRows::kBytesMax));
    }
    return {};
}

std::string_view without_ending(const ListedObject& object) {
    return std::string_view{object.key}.substr(0, object.key.size() - kMegatronData.size());
}

// Finds the pairs of NAME.bin and NAME.idx.
Result<std::vector<Shard>> pair_up(std::vector<ListedObject> objects) {
    std::ranges::sort(objects, {}, [](const ListedObject& object) {
        return std::pair{without_ending(object), std::string_view{object.key}};
    });
    std::vector<Shard> pairs;
    for (std::size_t i = 0; i < objects.size(); i += 2) {
        const bool is_pair = i + 1 < objects.size() && objects[i].key.ends_with(kMegatronData) &&
                             objects[i + 1].key.ends_with(kMegatronIndex) &&
                             without_ending(objects[i]) == without_ending(objects[i + 1]);
        if (!is_pair) {
            const bool is_index = objects[i].key.ends_with(kMegatronIndex);
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' has no '{}{}' beside it: add that one, or move this one away",
                    objects[i].key,
                    without_ending(objects[i]),
                    is_index ? kMegatronData : kMegatronIndex));
        }
        pairs.push_back({std::move(objects[i]), std::move(objects[i + 1])});
    }
    return pairs;
}

Result<std::unique_ptr<ShardIndex>> open_megatron(const Shard& shard) {
    if (shard.to_read().size_bytes < MegatronIndex::kHeaderBytes) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format("'{}' is not the index of a Megatron dataset", shard.to_read().key));
    }
    return std::make_unique<MegatronIndex>(shard.data, shard.to_read());
}

}  // namespace

std::string ShardFormat::describe() const {
    switch (format) {
        case SampleFormat::kTar:
            return "tar shards";
        case SampleFormat::kMegatron:
            return "Megatron's .bin and .idx";
        case SampleFormat::kTfRecord:
            return "TFRecords";
        default:
            return rows.suffix.empty()
                       ? fmt::format("rows of {} bytes", rows.bytes)
                       : fmt::format("rows of {} bytes in *{}", rows.bytes, rows.suffix);
    }
}

Result<std::vector<Shard>> find_shards(const ShardFormat& format, const Listing& objects) {
    STOKER_TRY_VOID(check_rows(format));
    std::vector<ListedObject> found;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const Listing::Entry object = objects[i];
        if (is_compressed(format, object.key)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' is compressed: unpack it first, because the samples of a compressed "
                    "shard cannot be read one by one",
                    object.key));
        }
        if (is_shard(format, object.key)) {
            found.push_back(object.copy());
        }
    }
    if (found.empty()) {
        return fail(ErrorCode::kNotFound, std::string{wanted_objects(format.format)});
    }
    if (format.format == SampleFormat::kMegatron) {
        return pair_up(std::move(found));
    }
    std::vector<Shard> shards;
    for (ListedObject& object : found) {
        if (format.format == SampleFormat::kRecords) {
            STOKER_TRY_VOID(count_rows(object, format.rows));
        }
        shards.push_back({std::move(object), std::nullopt});
    }
    return shards;
}

Result<std::unique_ptr<ShardIndex>> open_shard(const ShardFormat& format, const Shard& shard) {
    switch (format.format) {
        case SampleFormat::kTar:
            return std::make_unique<TarIndex>(shard.data);
        case SampleFormat::kMegatron:
            return open_megatron(shard);
        case SampleFormat::kTfRecord:
            return std::make_unique<TfRecordIndex>(shard.data);
        default:
            STOKER_TRY(const std::uint64_t count, count_rows(shard.data, format.rows));
            return std::make_unique<RowIndex>(shard.data, format.rows.bytes, count);
    }
}

Error no_samples(std::size_t shards) {
    return {
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset is empty: its {} shards have no samples", shards)};
}

}  // namespace stoker::domain
