#include "sidecar/origin/packed_listing.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/origin/fetch_all.h"

namespace stoker::sidecar {

namespace {

using domain::ChunkHeader;
using domain::ListedObject;

// Enough for a header of a few hundred samples: one request per chunk then suffices.
constexpr std::uint64_t kFirstReadBytes = std::uint64_t{32} << 10U;
constexpr std::size_t kBatchChunks = 64;

OriginFetch slice_of(const ListedObject& object, std::uint64_t offset, std::uint64_t length) {
    OriginFetch wanted{object.key, object.etag, length};
    wanted.slice = OriginSlice{offset, object.size_bytes};
    return wanted;
}

Result<ChunkHeader> finish_header(
    Origin& origin,
    const ListedObject& chunk,
    std::vector<std::byte> begin,
    const std::stop_token& stop) {
    STOKER_TRY(const std::uint32_t length, domain::chunk_header_length(begin));
    if (length > chunk.size_bytes) {
        return fail(ErrorCode::kCorruption, "a chunk is shorter than its header");
    }
    if (length > begin.size()) {
        STOKER_TRY(begin, read_begin(origin, chunk, length, stop));
    }
    STOKER_TRY(auto header, domain::parse_chunk_header(begin));
    if (header.object_bytes() != chunk.size_bytes) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format(
                "has {} bytes, its header says {}", chunk.size_bytes, header.object_bytes()));
    }
    return header;
}

Status read_batch(
    Origin& origin,
    std::span<const ListedObject> chunks,
    std::vector<ChunkHeader>& headers,
    const std::stop_token& stop) {
    std::vector<OriginFetch> wanted;
    for (const ListedObject& chunk : chunks) {
        if (chunk.size_bytes < domain::kChunkFixedBytes) {
            return fail(
                ErrorCode::kCorruption,
                fmt::format("'{}' of {} is not a chunk", chunk.key, origin.describe()));
        }
        wanted.push_back(slice_of(chunk, 0, std::min(kFirstReadBytes, chunk.size_bytes)));
    }
    auto results = fetch_all(origin, std::move(wanted), stop);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        STOKER_TRY(OriginBytes begin, std::move(results[i]));
        auto header = finish_header(origin, chunks[i], std::move(begin.payload), stop);
        if (!header) {
            return fail(header.error().prefixed(
                fmt::format("'{}' of {}", chunks[i].key, origin.describe())));
        }
        headers.push_back(*std::move(header));
    }
    return {};
}

Result<std::vector<ChunkHeader>> read_index(
    Origin& origin, const std::vector<ListedObject>& objects, const std::stop_token& stop) {
    const auto index = std::ranges::find(objects, domain::kChunkIndexKey, &ListedObject::key);
    if (index == objects.end()) {
        return fail(ErrorCode::kNotFound, "the pack has no index");
    }
    STOKER_TRY(const auto bytes, read_object(origin, *index, stop));
    return domain::parse_chunk_index(bytes);
}

// Lists the samples by the index. Fails if the index is missing or does not fit to the chunks.
Result<domain::Listing> list_by_index(
    Origin& origin, const std::vector<ListedObject>& objects, const std::stop_token& stop) {
    STOKER_TRY(auto headers, read_index(origin, objects, stop));
    const auto first = std::ranges::find(objects, domain::chunk_key(0), &ListedObject::key);
    // If chunk 0 is missing or too short, list_samples() refuses the pack.
    if (first != objects.end() && first->size_bytes >= domain::kChunkFixedBytes) {
        STOKER_TRY(const auto begin, read_begin(origin, *first, domain::kChunkFixedBytes, stop));
        STOKER_TRY_VOID(domain::check_first_chunk(headers, begin));
    }
    return domain::list_samples(std::move(headers), objects);
}

}  // namespace

std::vector<ListedObject> chunks_of(const std::vector<ListedObject>& objects) {
    std::vector<std::pair<std::uint32_t, const ListedObject*>> found;
    for (const ListedObject& object : objects) {
        if (const auto number = domain::parse_chunk_key(object.key)) {
            found.emplace_back(*number, &object);
        }
    }
    std::ranges::sort(found);
    std::vector<ListedObject> chunks;
    chunks.reserve(found.size());
    for (const auto& [number, object] : found) {
        chunks.push_back(*object);
    }
    return chunks;
}

Result<std::vector<std::byte>> read_begin(
    Origin& origin,
    const ListedObject& object,
    std::uint64_t length,
    const std::stop_token& stop,
    Bytes slice_bytes) {
    std::vector<std::byte> bytes;
    bytes.reserve(length);
    while (bytes.size() < length) {
        const std::uint64_t next = std::min(slice_bytes.count(), length - bytes.size());
        STOKER_TRY(
            const OriginBytes part, fetch_one(origin, slice_of(object, bytes.size(), next), stop));
        bytes.insert(bytes.end(), part.payload.begin(), part.payload.end());
    }
    return bytes;
}

Result<std::vector<std::byte>> read_object(
    Origin& origin, const ListedObject& object, const std::stop_token& stop, Bytes slice_bytes) {
    return read_begin(origin, object, object.size_bytes, stop, slice_bytes);
}

Result<std::vector<ChunkHeader>> read_headers(
    Origin& origin,
    const std::vector<ListedObject>& chunks,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    std::vector<ChunkHeader> headers;
    headers.reserve(chunks.size());
    std::uint64_t samples = 0;
    for (std::size_t at = 0; at < chunks.size(); at += kBatchChunks) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::kCancelled, "stopped");
        }
        const std::size_t count = std::min(kBatchChunks, chunks.size() - at);
        STOKER_TRY_VOID(read_batch(origin, std::span{chunks}.subspan(at, count), headers, stop));
        for (std::size_t i = at; i < headers.size(); ++i) {
            samples += headers[i].samples.size();
        }
        if (progress) {
            progress(samples);
        }
    }
    return headers;
}

Result<domain::Listing> list_packed(
    Origin& origin,
    const std::vector<ListedObject>& objects,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    auto listed = list_by_index(origin, objects, stop);
    if (listed || listed.error().code == ErrorCode::kCancelled) {
        return listed;
    }
    const std::vector<ListedObject> chunks = chunks_of(objects);
    log::warning(
        "no usable index of the chunks; reading the header of each",
        {{"origin", origin.describe()},
         {"chunks", std::to_string(chunks.size())},
         {"error", listed.error().message}});
    STOKER_TRY(auto headers, read_headers(origin, chunks, progress, stop));
    if (const Status whole = domain::check_pack(headers); !whole) {
        return fail(whole.error().prefixed(origin.describe()));
    }
    return domain::list_samples(std::move(headers), objects);
}

}  // namespace stoker::sidecar
