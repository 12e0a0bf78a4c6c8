#include "common/domain/chunk_format.h"

#include <charconv>
#include <unordered_map>

#include <fmt/core.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/wire.h"
#include "common/domain/take_number.h"

namespace stoker::domain {

namespace {

constexpr std::uint64_t kChunkMagic = 0x314B4E5548434B53ULL;  // "SKCHUNK1"
constexpr std::uint64_t kIndexMagic = 0x3158444E49434B53ULL;  // "SKCINDX1"
constexpr std::size_t kIndexFixedBytes = 32;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::uint64_t kChunkBytesMax = std::uint64_t{1} << 56U;
constexpr std::string_view kPlacePrefix = "chunk:";

// The header's fixed part as read; not trusted before its checksum has been compared.
struct FixedPart {
    std::uint32_t header_bytes = 0;
    std::uint32_t number = 0;
    std::uint32_t sample_count = 0;
    std::uint32_t names_bytes = 0;
    std::uint64_t payload_bytes = 0;
    PackIdentity pack;
};

tl::unexpected<Error> corrupt(std::string message) {
    return fail(ErrorCode::kCorruption, std::move(message));
}

Status check_magic(WireReader& in, std::uint64_t magic, std::string_view what) {
    if (in.get<std::uint64_t>() != magic) {
        return corrupt(fmt::format("not {}", what));
    }
    if (const auto version = in.get<std::uint32_t>(); version != kChunkFormatVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "chunk format version {}, this program reads version {}",
                version,
                kChunkFormatVersion));
    }
    return {};
}

Result<FixedPart> read_fixed_part(std::span<const std::byte> bytes) {
    if (bytes.size() < kChunkFixedBytes) {
        return corrupt("a chunk is shorter than its header");
    }
    WireReader in{bytes};
    STOKER_TRY_VOID(check_magic(in, kChunkMagic, "a chunk"));
    FixedPart fixed;
    fixed.header_bytes = in.get<std::uint32_t>();
    fixed.pack.id = PackId{in.get<std::uint64_t>()};
    fixed.pack.seed = in.get<std::uint64_t>();
    const auto order = in.get<std::uint32_t>();
    fixed.pack.chunk_count = in.get<std::uint32_t>();
    fixed.number = in.get<std::uint32_t>();
    fixed.sample_count = in.get<std::uint32_t>();
    fixed.names_bytes = in.get<std::uint32_t>();
    const auto reserved = in.get<std::uint32_t>();
    fixed.payload_bytes = in.get<std::uint64_t>();
    const std::uint64_t length = kChunkFixedBytes + kChecksumBytes +
                                 std::uint64_t{fixed.sample_count} * kChunkSampleBytes +
                                 fixed.names_bytes;
    if (length != fixed.header_bytes || length > kChunkHeaderBytesMax) {
        return corrupt(fmt::format(
            "a chunk's header says {} bytes, its table needs {}", fixed.header_bytes, length));
    }
    if (order > static_cast<std::uint32_t>(PackOrder::kRandom) || reserved != 0 ||
        fixed.number >= fixed.pack.chunk_count || fixed.payload_bytes > kChunkBytesMax) {
        return corrupt("a chunk's header has a number out of range");
    }
    fixed.pack.order = static_cast<PackOrder>(order);
    return fixed;
}

Status check_name(std::string_view name) {
    if (name.empty() || name.size() > kSampleNameBytesMax ||
        name.find('\0') != std::string_view::npos) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' cannot be the name of a packed sample", name));
    }
    return {};
}

// Parses the table's rows and the names. kCorruption: an offset that does not follow the previous
// sample, or lengths whose sums differ from the fixed part.
Result<std::vector<ChunkSample>> read_samples(
    const FixedPart& fixed, std::span<const std::byte> header) {
    WireReader table{header.subspan(kChunkFixedBytes)};
    WireReader names{header.subspan(
        kChunkFixedBytes + fixed.sample_count * kChunkSampleBytes, fixed.names_bytes)};
    std::vector<ChunkSample> samples(fixed.sample_count);
    std::uint64_t offset = fixed.header_bytes;
    for (ChunkSample& sample : samples) {
        const auto told_offset = table.get<std::uint64_t>();
        sample.size_bytes = table.get<std::uint64_t>();
        sample.crc32c = table.get<std::uint32_t>();
        const auto name_bytes = table.get<std::uint32_t>();
        sample.name = names.get_text(name_bytes);
        if (told_offset != offset || sample.size_bytes > fixed.payload_bytes ||
            !check_name(sample.name)) {
            return corrupt("a chunk's header has an impossible sample");
        }
        offset += sample.size_bytes;
    }
    if (names.left() != 0 || offset - fixed.header_bytes != fixed.payload_bytes) {
        return corrupt("the lengths in a chunk's header do not add up");
    }
    return samples;
}

bool ends_with_its_checksum(std::span<const std::byte> bytes) {
    const auto body = bytes.first(bytes.size() - kChecksumBytes);
    return WireReader{bytes.subspan(body.size())}.get<std::uint32_t>() == crc32c(body);
}

}  // namespace

std::uint64_t ChunkHeader::header_bytes() const {
    std::uint64_t bytes = kChunkFixedBytes + kChecksumBytes + samples.size() * kChunkSampleBytes;
    for (const ChunkSample& sample : samples) {
        bytes += sample.name.size();
    }
    return bytes;
}

std::uint64_t ChunkHeader::object_bytes() const {
    std::uint64_t bytes = header_bytes();
    for (const ChunkSample& sample : samples) {
        bytes += sample.size_bytes;
    }
    return bytes;
}

std::string chunk_key(std::uint32_t number) {
    return fmt::format("chunk-{:08}", number);
}

std::optional<std::uint32_t> parse_chunk_key(std::string_view key) {
    constexpr std::string_view kPrefix = "chunk-";
    std::uint32_t number = 0;
    if (!key.starts_with(kPrefix)) {
        return std::nullopt;
    }
    std::from_chars(key.data() + kPrefix.size(), key.data() + key.size(), number);
    return key == chunk_key(number) ? std::optional{number} : std::nullopt;
}

Result<std::vector<std::byte>> encode_chunk_header(const ChunkHeader& header) {
    const std::uint64_t length = header.header_bytes();
    if (header.samples.empty() || length > kChunkHeaderBytesMax) {
        return fail(ErrorCode::kInvalidArgument, "a chunk has no samples, or names of over 64 MiB");
    }
    WireWriter table;
    WireWriter names;
    std::uint64_t offset = length;
    for (const ChunkSample& sample : header.samples) {
        STOKER_TRY_VOID(check_name(sample.name));
        table.put(offset)
            .put(sample.size_bytes)
            .put(sample.crc32c)
            .put(static_cast<std::uint32_t>(sample.name.size()));
        names.put_text(sample.name);
        offset += sample.size_bytes;
    }
    WireWriter out;
    out.put(kChunkMagic)
        .put(kChunkFormatVersion)
        .put(static_cast<std::uint32_t>(length))
        .put(header.pack.id.value())
        .put(header.pack.seed)
        .put(static_cast<std::uint32_t>(header.pack.order))
        .put(header.pack.chunk_count)
        .put(header.number)
        .put(static_cast<std::uint32_t>(header.samples.size()))
        .put(static_cast<std::uint32_t>(names.size()))
        .put(std::uint32_t{0})  // reserved
        .put(offset - length);
    out.put_bytes(table.view()).put_bytes(names.view());
    out.put(crc32c(out.view()));
    return std::move(out).take();
}

Result<std::uint32_t> chunk_header_length(std::span<const std::byte> fixed_part) {
    STOKER_TRY(const FixedPart fixed, read_fixed_part(fixed_part));
    return fixed.header_bytes;
}

Result<ChunkHeader> parse_chunk_header(std::span<const std::byte> bytes) {
    STOKER_TRY(const FixedPart fixed, read_fixed_part(bytes));
    if (bytes.size() < fixed.header_bytes) {
        return corrupt("a chunk is shorter than its header");
    }
    const auto header = bytes.first(fixed.header_bytes);
    if (!ends_with_its_checksum(header)) {
        return corrupt("a chunk's header does not match its checksum");
    }
    if (fixed.sample_count == 0) {
        return corrupt("a chunk has no samples");
    }
    STOKER_TRY(auto samples, read_samples(fixed, header));
    return ChunkHeader{fixed.pack, fixed.number, std::move(samples)};
}

std::vector<std::byte> encode_chunk_index(const std::vector<ChunkHeader>& headers) {
    STOKER_CHECK(!headers.empty(), "an index needs at least one chunk");
    WireWriter out;
    out.put(kIndexMagic)
        .put(kChunkFormatVersion)
        .put(static_cast<std::uint32_t>(headers.size()))
        .put(headers.front().pack.id.value());
    out.pad_to(kIndexFixedBytes);
    for (const ChunkHeader& header : headers) {
        const auto bytes = encode_chunk_header(header);
        STOKER_CHECK(bytes.has_value(), "the header must have been written or parsed before");
        out.put_bytes(*bytes);
    }
    out.put(crc32c(out.view()));
    return std::move(out).take();
}

Result<std::vector<ChunkHeader>> parse_chunk_index(std::span<const std::byte> bytes) {
    if (bytes.size() < kIndexFixedBytes + kChecksumBytes) {
        return corrupt("the index is shorter than its header");
    }
    WireReader in{bytes};
    STOKER_TRY_VOID(check_magic(in, kIndexMagic, "an index of chunks"));
    const auto count = in.get<std::uint32_t>();
    const PackId id{in.get<std::uint64_t>()};
    if (!ends_with_its_checksum(bytes)) {
        return corrupt("the index does not match its checksum");
    }
    auto rest = bytes.subspan(kIndexFixedBytes, bytes.size() - kIndexFixedBytes - kChecksumBytes);
    std::vector<ChunkHeader> headers;
    while (!rest.empty()) {
        STOKER_TRY(const std::uint32_t length, chunk_header_length(rest));
        STOKER_TRY(auto header, parse_chunk_header(rest));
        headers.push_back(std::move(header));
        rest = rest.subspan(length);
    }
    if (headers.size() != count || headers.empty() || headers.front().pack.id != id) {
        return corrupt("the index has another number of chunks than it states");
    }
    STOKER_TRY_VOID(check_pack(headers));
    return headers;
}

bool begins_as_index(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof(kIndexMagic) &&
           WireReader{bytes}.get<std::uint64_t>() == kIndexMagic;
}

Status check_first_chunk(
    const std::vector<ChunkHeader>& headers, std::span<const std::byte> fixed_part) {
    STOKER_TRY(const FixedPart fixed, read_fixed_part(fixed_part));
    if (fixed.pack != headers.front().pack || fixed.number != 0) {
        return fail(
            ErrorCode::kConflict,
            fmt::format("the index is of another pack than {}", chunk_key(0)));
    }
    return {};
}

Status check_pack(const std::vector<ChunkHeader>& headers) {
    if (headers.empty()) {
        return fail(ErrorCode::kInvalidArgument, "the pack has no chunks");
    }
    const PackIdentity& pack = headers.front().pack;
    for (std::size_t i = 0; i < headers.size(); ++i) {
        if (headers[i].pack != pack) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "{} and {} are of different packs",
                    chunk_key(headers.front().number),
                    chunk_key(headers[i].number)));
        }
        if (headers[i].number != i) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("{} holds another chunk of the pack", chunk_key(std::uint32_t(i))));
        }
    }
    if (headers.size() != pack.chunk_count) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("only {} of the pack's {} chunks exist", headers.size(), pack.chunk_count));
    }
    return {};
}

std::string encode_place(const ChunkPlace& place) {
    return fmt::format(
        "{}{}:{}:{:08x}:{}:{}",
        kPlacePrefix,
        place.chunk,
        place.offset,
        place.crc32c,
        place.chunk_bytes,
        place.chunk_etag);
}

std::optional<ChunkPlace> parse_place(std::string_view etag) {
    if (!etag.starts_with(kPlacePrefix)) {
        return std::nullopt;
    }
    etag.remove_prefix(kPlacePrefix.size());
    const auto chunk = take_number<std::uint32_t>(etag);
    const auto offset = take_number<std::uint64_t>(etag);
    const auto crc = take_number<std::uint32_t>(etag, 16);
    const auto chunk_bytes = take_number<std::uint64_t>(etag);
    if (!chunk || !offset || !crc || !chunk_bytes || etag.empty() || *offset < kChunkFixedBytes ||
        *offset > *chunk_bytes) {
        return std::nullopt;
    }
    return ChunkPlace{*chunk, *offset, *crc, *chunk_bytes, std::string{etag}};
}

Result<Listing> list_samples(
    std::vector<ChunkHeader> headers, const std::vector<ListedObject>& objects) {
    std::unordered_map<std::uint32_t, const ListedObject*> chunks;
    for (const ListedObject& object : objects) {
        if (const auto number = parse_chunk_key(object.key)) {
            chunks.emplace(*number, &object);
        }
    }
    Listing samples;
    for (ChunkHeader& header : headers) {
        const auto object = chunks.find(header.number);
        if (object == chunks.end() || object->second->size_bytes != header.object_bytes()) {
            return fail(
                ErrorCode::kConflict,
                fmt::format(
                    "{} is missing or has another length than its header says; run stoker pack",
                    chunk_key(header.number)));
        }
        ChunkPlace place{
            header.number, header.header_bytes(), 0, header.object_bytes(), object->second->etag};
        for (const ChunkSample& sample : header.samples) {
            place.crc32c = sample.crc32c;
            STOKER_TRY_VOID(samples.add(sample.name, sample.size_bytes, encode_place(place)));
            place.offset += sample.size_bytes;
        }
        header.samples = {};
    }
    if (chunks.size() != headers.size()) {
        return fail(
            ErrorCode::kConflict,
            fmt::format("there are {} chunks, the pack has {}", chunks.size(), headers.size()));
    }
    return samples;
}

}  // namespace stoker::domain
