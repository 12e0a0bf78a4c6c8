#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/sample_format.h"
#include "common/domain/shard_index.h"

// Finds the shards in a listing and tells how to read their samples; for sidecar and client. Pure.
namespace stoker::domain {

struct ShardFormat {
    SampleFormat format = SampleFormat::kTar;  // a format for which has_shards() is true
    RecordRows rows{};                         // of format kRecords

    // Names the shards in messages, such as "tar shards". Formats that make other samples from the
    // same objects return other texts.
    [[nodiscard]] std::string describe() const;
};

struct Shard {
    ListedObject data;                  // the object whose ranges are samples
    std::optional<ListedObject> index;  // the object beside it that tells the ranges; nullopt: none

    // The object whose windows are read to find the samples.
    [[nodiscard]] const ListedObject& to_read() const { return index ? *index : data; }
};

// The shards of a listing, in its order; leaves out other objects. kNotFound: there is no shard.
// kInvalidArgument: a compressed shard, half of a pair, an object that count_rows() refuses, or
// settings out of range; the message names the object.
Result<std::vector<Shard>> find_shards(const ShardFormat& format, const Listing& objects);

// Opens the index of a shard that find_shards() returned; never nullptr. Its windows are empty only
// for format kRecords. kCorruption: Megatron's index has no header.
Result<std::unique_ptr<ShardIndex>> open_shard(const ShardFormat& format, const Shard& shard);

// The error of a listing whose shards have no sample.
Error no_samples(std::size_t shards);

}  // namespace stoker::domain
