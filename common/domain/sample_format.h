#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::domain {

// How samples are stored at the origin: each as an object or file, in chunks (chunk_format.h), as blocks of
// objects (block_format.h), or as ranges of shards (shard_format.h): members of tar files, rows of one
// size, Megatron's sequences, TFRecords.
enum class SampleFormat : std::uint8_t {
    kObjects,
    kChunks,
    kBlocks,
    kTar,
    kRecords,
    kMegatron,
    kTfRecord
};

// The names used in settings, by enum value. The operator writes its own names in lower case.
inline constexpr std::array<std::string_view, 7> kSampleFormatNames{
    "objects", "chunks", "blocks", "tar", "records", "megatron", "tfrecord"};

constexpr std::optional<SampleFormat> parse_sample_format(std::string_view name) {
    const auto* found = std::ranges::find(kSampleFormatNames, name);
    if (found == kSampleFormatNames.end()) {
        return std::nullopt;
    }
    return static_cast<SampleFormat>(found - kSampleFormatNames.begin());
}

// Whether samples are ranges of shards.
constexpr bool has_shards(SampleFormat format) {
    return format == SampleFormat::kTar || format == SampleFormat::kRecords ||
           format == SampleFormat::kMegatron || format == SampleFormat::kTfRecord;
}

// The rows of format kRecords: fixed-size samples.
struct RecordRows {
    static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30U;

    std::uint64_t bytes = 0;  // size of a row, 1..kBytesMax
    std::string suffix{};     // suffix of the keys of objects that have rows; empty: all objects

    bool operator==(const RecordRows&) const = default;
};

}  // namespace stoker::domain
