#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/result.h"
#include "common/domain/shard_index.h"

// The samples of TFRecord files: the payload of each record is a sample. A record consists of
//
//   length u64 · CRC of the length u32 · payload · CRC of the payload u32
//
// all little-endian; the CRCs are CRC-32C in TensorFlow's masked form. Pure.
namespace stoker::domain {

// The CRC-32C whose masked form this is. Masking rotates the CRC by 15 bits and adds a constant.
constexpr std::uint32_t unmasked_crc32c(std::uint32_t masked) {
    constexpr std::uint32_t kMask = 0xA282EAD8U;
    const std::uint32_t rotated = masked - kMask;
    return (rotated >> 17U) | (rotated << 15U);
}

// Whether the object is a file of TFRecords: its key ends in .tfrecord, .tfrecords or .tfrec, or in
// one of these followed by a part number such as "-00007-of-00128", or is a file without extension
// with such a number. A checkpoint's "model.data-00000-of-00001" is not one.
bool is_tfrecord_shard(std::string_view key);

// take() compares the CRC of each length, and gives the samples the CRCs of their payloads. So
// fetches of samples are checked, and listing reads no payloads except those between headers in one
// window (ShardIndex). kCorruption names the offset in the file.
class TfRecordIndex final : public ShardIndex {
public:
    static constexpr std::uint64_t kHeaderBytes = 12;
    static constexpr std::uint64_t kFooterBytes = 4;

    explicit TfRecordIndex(ListedObject shard)
        : ShardIndex(std::move(shard)) {}

private:
    struct Record {
        std::uint64_t payload = 0;  // offset of the payload
        std::uint64_t size_bytes = 0;
    };

    // The CRC after the record whose header was read last, together with the next header.
    [[nodiscard]] std::optional<ByteRange> wanted() const override;
    Status step(std::span<const std::byte> bytes, Listing& samples) override;
    Status take_header(std::span<const std::byte> bytes);

    std::uint64_t at_ = 0;          // offset of the next byte to take
    std::uint64_t count_ = 0;       // number of complete records
    std::optional<Record> record_;  // a record whose header was read and whose CRC was not
};

}  // namespace stoker::domain
