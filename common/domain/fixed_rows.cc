#include "common/domain/fixed_rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker::domain {

Result<std::uint64_t> count_rows(const ListedObject& object, const RecordRows& rows) {
    const std::uint64_t count = object.size_bytes / rows.bytes;
    if (const std::uint64_t rest = object.size_bytes % rows.bytes; rest != 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "'{}' has {} bytes, which are {} rows of {} bytes and {} bytes more: correct "
                "records.bytes, or leave other objects out with records.suffix",
                object.key,
                object.size_bytes,
                count,
                rows.bytes,
                rest));
    }
    STOKER_TRY_VOID(check_sample_count(object, count));
    return count;
}

std::optional<ByteRange> RowIndex::wanted() const {
    return done_ == count_ ? std::nullopt : std::optional{ByteRange{done_ * row_bytes_, 0}};
}

Status RowIndex::step(std::span<const std::byte> /*bytes*/, Listing& samples) {
    for (const std::uint64_t end = std::min(count_, done_ + kRunRows); done_ < end; ++done_) {
        STOKER_TRY_VOID(
            add_sample(object(), {number_name(done_), done_ * row_bytes_, row_bytes_}, samples));
    }
    return {};
}

}  // namespace stoker::domain
