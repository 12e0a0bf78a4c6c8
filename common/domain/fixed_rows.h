#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/result.h"
#include "common/domain/sample_format.h"
#include "common/domain/shard_index.h"

namespace stoker::domain {

// The number of rows of an object. Requires: 1 <= rows.bytes. kInvalidArgument: it does not end with a row, or
// has too many. Pure.
Result<std::uint64_t> count_rows(const ListedObject& object, const RecordRows& rows);

// The rows of an object, each a sample, named by its number in the object. They follow from the object's size, so
// all windows are empty.
class RowIndex final : public ShardIndex {
public:
    static constexpr std::uint64_t kRunRows = 4096;  // that take() adds

    // `count`: of count_rows().
    RowIndex(ListedObject shard, std::uint64_t row_bytes, std::uint64_t count)
        : ShardIndex(std::move(shard)),
          row_bytes_(row_bytes),
          count_(count) {}

private:
    [[nodiscard]] std::optional<ByteRange> wanted() const override;
    Status step(std::span<const std::byte> bytes, Listing& samples) override;

    std::uint64_t row_bytes_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t done_ = 0;  // of them
};

}  // namespace stoker::domain
