#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/result.h"
#include "common/domain/sample_format.h"
#include "common/domain/shard_index.h"

namespace stoker::domain {

// Number of rows in an object. Requires: 1 <= rows.bytes. kInvalidArgument: the object does not end
// with a whole row, or has too many rows. Pure.
Result<std::uint64_t> count_rows(const ListedObject& object, const RecordRows& rows);

// The rows of an object; each row is a sample, named by its number in the object. They follow from
// the object's size, so no bytes need to be read: all windows are empty.
class RowIndex final : public ShardIndex {
public:
    static constexpr std::uint64_t kRunRows = 4096;  // rows that one take() adds

    // `count`: result of count_rows().
    RowIndex(ListedObject shard, std::uint64_t row_bytes, std::uint64_t count)
        : ShardIndex(std::move(shard)),
          row_bytes_(row_bytes),
          count_(count) {}

private:
    [[nodiscard]] std::optional<ByteRange> wanted() const override;
    Status step(std::span<const std::byte> bytes, Listing& samples) override;

    std::uint64_t row_bytes_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t done_ = 0;  // rows added so far
};

}  // namespace stoker::domain
