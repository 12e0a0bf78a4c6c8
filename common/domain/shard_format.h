#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/listing.h"
#include "common/domain/sample_format.h"
#include "common/domain/shard_index.h"

// Which objects of a listing are shards, and how their samples are found; for the sidecar and the client. Pure.
namespace stoker::domain {

struct ShardFormat {
    SampleFormat format = SampleFormat::kTar;  // has_shards()
    RecordRows rows{};                         // of format kRecords

    // The shards in messages, "tar shards". Formats that give other samples from the same objects have other
    // texts.
    [[nodiscard]] std::string describe() const;
};

struct Shard {
    ListedObject data;                  // whose ranges are samples
    std::optional<ListedObject> index;  // the object beside it that says which; nullopt: none

    // The object whose windows are read to find the samples.
    [[nodiscard]] const ListedObject& to_read() const { return index ? *index : data; }
};

// The shards of a listing, in its order; other objects are left out. kNotFound: there is none. kInvalidArgument: a
// compressed shard, half of a pair, an object that count_rows() refuses, or settings out of range; the message names
// the object.
Result<std::vector<Shard>> find_shards(const ShardFormat& format, const Listing& objects);

// The index of a shard of find_shards(); never nullptr. Its windows are empty for format kRecords only. kCorruption:
// Megatron's index has no header.
Result<std::unique_ptr<ShardIndex>> open_shard(const ShardFormat& format, const Shard& shard);

// The error of a listing whose shards have no sample.
Error no_samples(std::size_t shards);

}  // namespace stoker::domain
