#include "common/domain/residency_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/crc32c.h"
#include "common/base/wire.h"

namespace stoker::domain {

namespace {

constexpr std::uint64_t kResidencyMagic = 0x3144495345524B53ULL;  // "SKRESID1"
constexpr std::size_t kChecksumOffset = 60;

}  // namespace

std::array<std::byte, kResidencyHeaderBytes> encode_residency_header(
    const ResidencyHeader& header) {
    WireWriter out;
    out.put(kResidencyMagic)
        .put(kResidencyFormatVersion)
        .put(std::uint32_t{0})
        .put(header.revision.value())
        .put(header.sample_count);
    out.pad_to(kChecksumOffset).put(crc32c(out.view()));
    std::array<std::byte, kResidencyHeaderBytes> bytes{};
    std::ranges::copy(out.view(), bytes.begin());
    return bytes;
}

Result<ResidencyHeader> decode_residency_header(std::span<const std::byte> bytes) {
    if (bytes.size() < kResidencyHeaderBytes) {
        return fail(ErrorCode::kCorruption, "residency table is shorter than its header");
    }
    WireReader in{bytes};
    if (in.get<std::uint64_t>() != kResidencyMagic) {
        return fail(ErrorCode::kCorruption, "not a residency table");
    }
    if (const auto version = in.get<std::uint32_t>(); version != kResidencyFormatVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "residency table version {}, this program reads version {}",
                version,
                kResidencyFormatVersion));
    }
    in.get<std::uint32_t>();
    ResidencyHeader header;
    header.revision = RevisionId{in.get<std::uint64_t>()};
    header.sample_count = in.get<std::uint64_t>();
    const auto stored = WireReader{bytes.subspan(kChecksumOffset)}.get<std::uint32_t>();
    if (stored != crc32c(bytes.first(kChecksumOffset))) {
        return fail(ErrorCode::kCorruption, "residency table header does not match its checksum");
    }
    return header;
}

}  // namespace stoker::domain
