#include "common/domain/fixed_rows.h"

#include <fmt/format.h>

#include "common/domain/shard_index.h"

namespace stoker::domain {

Status add_rows(const ListedObject& object, const RecordRows& rows, Listing& samples) {
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
    for (std::uint64_t row = 0; row < count; ++row) {
        STOKER_TRY_VOID(
            add_sample(object, {number_name(row), row * rows.bytes, rows.bytes}, samples));
    }
    return {};
}

}  // namespace stoker::domain
