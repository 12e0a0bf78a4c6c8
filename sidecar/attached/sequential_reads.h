#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "common/base/guarded.h"
#include "common/domain/block_format.h"

namespace stoker::attached {

inline constexpr std::uint32_t kRangesInARow = 3;

// Detects clients that read an object of blocks sequentially, each range beginning where the last
// one ended, so that the next block can be fetched before it is requested: such clients announce no
// plan. Thread-safe. Remembers the last `runs_max` positions at which ranges ended.
class SequentialReads {
public:
    explicit SequentialReads(std::size_t runs_max = 64)
        : runs_max_(runs_max) {}

    // A client requests `length` bytes from `offset` on. Returns the block after them, once, if
    // this is at least the third range in a row and the object has more blocks.
    std::optional<domain::SampleId> note(
        const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length);

private:
    struct Run {
        domain::SampleId first;  // first block of the object
        std::uint64_t end = 0;   // where the last range ended
        std::uint32_t ranges = 1;
        std::uint64_t asked_block = 0;  // the block that was returned last
    };

    std::size_t runs_max_;
    Guarded<std::list<Run>> newest_first_;
};

}  // namespace stoker::attached
