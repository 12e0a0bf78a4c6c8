#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/result.h"
#include "common/domain/ids.h"

// The file `residency.<revision>`: header (64) · one 64-bit residency word per sample id. Only the
// leader writes it; clients map it read-only. It may be deleted at any time and is rebuilt from the
// segments.
namespace stoker::domain {

inline constexpr std::uint32_t kResidencyFormatVersion = 1;
inline constexpr std::size_t kResidencyHeaderBytes = 64;

struct ResidencyHeader {
    RevisionId revision{};
    std::uint64_t sample_count = 0;

    bool operator==(const ResidencyHeader&) const = default;
};

constexpr std::uint64_t residency_file_bytes(std::uint64_t sample_count) {
    return kResidencyHeaderBytes + sample_count * sizeof(std::uint64_t);
}

std::array<std::byte, kResidencyHeaderBytes> encode_residency_header(const ResidencyHeader& header);

// Parses a header. Errors: kCorruption; kInvalidArgument: another version.
Result<ResidencyHeader> decode_residency_header(std::span<const std::byte> bytes);

}  // namespace stoker::domain
