#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "common/base/guarded.h"
#include "common/domain/block_format.h"

namespace stoker::attached {

inline constexpr std::uint32_t kRangesInARow = 3;

// Finds readers that go through an object of blocks range by range, each request beginning where the
// one before ended, so that the next block can be fetched before it is asked for: such a reader
// announces no plan. Thread-safe. Remembers the last `runs_max` places where ranges ended.
class SequentialReads {
public:
    explicit SequentialReads(std::size_t runs_max = 64)
        : runs_max_(runs_max) {}

    // A client asks for `length` bytes from `offset` on. Returns the block behind them, once, if this
    // is the third range in a row or a later one, and the object goes on.
    std::optional<domain::SampleId> note(
        const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length);

private:
    struct Run {
        domain::SampleId first;  // of the object
        std::uint64_t end = 0;   // of the last range
        std::uint32_t ranges = 1;
        std::uint64_t asked_block = 0;  // the last one returned
    };

    std::size_t runs_max_;
    Guarded<std::list<Run>> newest_first_;
};

}  // namespace stoker::attached
