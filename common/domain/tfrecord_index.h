#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/shard_index.h"

// The samples of TFRecord files: the payloads of their records. A record is
//
//   length u64 · CRC of the length u32 · payload · CRC of the payload u32
//
// in little endian, with CRC-32C in TensorFlow's masked form. Pure.
namespace stoker::domain {

// The CRC-32C of which this is the masked form: a sum with a constant, of the CRC rotated by 15 bits.
constexpr std::uint32_t unmasked_crc32c(std::uint32_t masked) {
    constexpr std::uint32_t kMask = 0xA282EAD8U;
    const std::uint32_t rotated = masked - kMask;
    return (rotated >> 17U) | (rotated << 15U);
}

// Whether the object is a file of TFRecords: its key ends in .tfrecord, .tfrecords or .tfrec, also before
// "-00007-of-00128", or in such a number of a part of a file without extension. A checkpoint's
// "model.data-00000-of-00001" is none.
bool is_tfrecord_shard(std::string_view key);

// take() compares the CRC of each length, and gives the samples the CRCs of their payloads. So fetches of
// samples are checked, and the listing reads no payloads but those between headers (ShardIndex). kCorruption
// names the offset in the file.
class TfRecordIndex final : public ShardIndex {
public:
    static constexpr std::uint64_t kHeaderBytes = 12;
    static constexpr std::uint64_t kFooterBytes = 4;

    explicit TfRecordIndex(ListedObject shard)
        : ShardIndex(std::move(shard)) {}

private:
    struct Record {
        std::uint64_t payload = 0;  // its offset
        std::uint64_t size_bytes = 0;
    };

    // The CRC behind the record whose header was read, and the next header.
    [[nodiscard]] std::optional<ByteRange> wanted() const override;
    Status step(std::span<const std::byte> bytes, Listing& samples) override;
    Status take_header(std::span<const std::byte> bytes);

    std::uint64_t at_ = 0;          // of the next byte to take
    std::uint64_t count_ = 0;       // of complete records
    std::optional<Record> record_;  // its header was read, its CRC was not
};

}  // namespace stoker::domain
