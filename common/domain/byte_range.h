#pragma once

#include <cstdint>

namespace stoker::domain {

// A part of a file or object, in bytes.
struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // 0 only where a function explicitly allows it

    bool operator==(const ByteRange&) const = default;
};

}  // namespace stoker::domain
