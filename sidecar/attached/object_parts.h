#pragma once

#include <cstddef>
#include <cstdint>

#include "common/domain/block_format.h"

namespace stoker::attached {

// A range of an object as parts of its samples, in order: one part, or one for each block that the
// range touches. Pure.
class ObjectParts {
public:
    struct Part {
        domain::SampleId id{};
        std::uint64_t sample_bytes = 0;
        std::uint64_t offset = 0;  // first byte within the sample
        std::uint64_t length = 0;

        bool operator==(const Part&) const = default;
    };

    ObjectParts() = default;

    // Requires 1 <= length and offset + length <= object.size_bytes.
    ObjectParts(const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length);

    [[nodiscard]] std::size_t size() const { return size_; }

    // `index` must be below size().
    [[nodiscard]] Part operator[](std::size_t index) const;

    // The part's first byte, as an offset in the object.
    [[nodiscard]] std::uint64_t offset_of(std::size_t index) const;

private:
    domain::StoredObject object_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::uint64_t first_block_ = 0;
    std::size_t size_ = 0;
};

}  // namespace stoker::attached
