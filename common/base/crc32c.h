#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `data`, continued from `seed`, which is 0 or an
// earlier result: crc32c(b, crc32c(a)) == crc32c(a ‖ b). Uses the processor's CRC instruction if
// there is one. Pure.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

// The CRC-32C of a ‖ b, computed from the CRC of a, the CRC of b, and b's length `b_bytes`: parts
// may be summed in any order. Pure; takes about a microsecond, whatever the length.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes);

}  // namespace stoker
