#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Assigns segment numbers, each one only once in the life of a node directory. An empty file
// `segments/next.<n>` (the mark) guarantees this: it is durable before any number below n is used,
// and is replaced by one with a higher n. So no crash, power cut, or loss of table and state file
// repeats a number. Not thread-safe.
class SegmentNumbers {
public:
    // Continues from the mark in the directory, or from `lowest` if that is higher.
    static Result<SegmentNumbers> open(
        Device& device, const std::string& directory, std::uint64_t lowest);

    // The next number. kResourceExhausted: all 2^32 are used. Device errors: try again later.
    Result<domain::SegmentSeq> next();

private:
    SegmentNumbers(Device& device, std::string directory)
        : device_(&device),
          directory_(std::move(directory)) {}

    Status promise(std::uint64_t number);

    Device* device_;
    std::string directory_;
    std::uint64_t next_ = 0;
    std::uint64_t promised_ = 0;  // the current mark: numbers below it may be used
    std::uint64_t marked_ = 0;    // the newest mark in the directory; 0: none
};

}  // namespace stoker::sidecar
