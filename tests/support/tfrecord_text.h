#pragma once

#include <cstdint>
#include <string>

#include "common/base/crc32c.h"
#include "common/base/wire.h"

// Makes files of TFRecords for tests.
namespace stoker::test {

// TensorFlow's masked CRC-32C.
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

// The header of a record with a payload of this length.
inline std::string tfrecord_header(std::uint64_t length) {
    WireWriter out;
    out.put(length).put(masked_crc32c(std::as_bytes(std::span{&length, 1})));
    return out.text();
}

inline std::string tfrecord(const std::string& payload) {
    WireWriter footer;
    footer.put(masked_crc32c(std::as_bytes(std::span{payload})));
    return tfrecord_header(payload.size()) + payload + footer.text();
}

}  // namespace stoker::test
