#include "sidecar/pack/pack_run.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "common/base/crc32c.h"
#include "sidecar/origin/fetch_all.h"
#include "sidecar/origin/packed_listing.h"

namespace stoker::sidecar {

namespace {

using domain::ChunkHeader;
using domain::ChunkSample;
using domain::ListedObject;

constexpr Bytes kSliceBytes = mib(64);

// Calls `work` for 0..count-1 on `threads` threads. Returns the first error, after which no further
// call begins.
Status for_each_chunk(
    std::uint32_t threads,
    std::size_t count,
    const std::stop_token& stop,
    const std::function<Status(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    Status first_error;
    const auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            const Status done =
                stop.stop_requested() ? fail(ErrorCode::kCancelled, "stopped") : work(i);
            if (!done) {
                const std::lock_guard lock{mutex};
                first_error = first_error ? done : first_error;
                next = count;
            }
        }
    };
    std::vector<std::thread> running;
    for (std::uint32_t i = 0; i < threads; ++i) {
        running.emplace_back(run);
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    return first_error;
}

// Compares names and sizes but not checksums, which a plan does not know.
bool plans_equal(const ChunkHeader& a, const ChunkHeader& b) {
    return a.pack == b.pack && a.number == b.number &&
           std::ranges::equal(a.samples, b.samples, [](const auto& one, const auto& other) {
               return one.name == other.name && one.size_bytes == other.size_bytes;
           });
}

// Makes the error retryable: an answer such as 400 BadDigest may differ the next time.
Error may_pass(Error error) {
    const bool is_answer = error.code == ErrorCode::kInvalidArgument;
    error.code = is_answer ? ErrorCode::kUnavailable : error.code;
    return error;
}

// The payloads of a chunk after its header; fills in the checksums.
Result<std::vector<std::byte>> read_samples(
    Origin& source, PlannedChunk& chunk, const std::stop_token& stop) {
    std::vector<OriginFetch> wanted;
    for (std::size_t i = 0; i < chunk.header.samples.size(); ++i) {
        const ChunkSample& sample = chunk.header.samples[i];
        wanted.push_back({sample.name, chunk.etags[i], sample.size_bytes});
    }
    auto payloads = fetch_all(source, std::move(wanted), stop);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        if (!payloads[i]) {
            return fail(may_pass(payloads[i].error()));
        }
        chunk.header.samples[i].crc32c = crc32c(payloads[i]->payload);
    }
    STOKER_TRY(std::vector<std::byte> bytes, domain::encode_chunk_header(chunk.header));
    bytes.reserve(chunk.header.object_bytes());
    for (auto& payload : payloads) {
        bytes.insert(bytes.end(), payload->payload.begin(), payload->payload.end());
        payload->payload = {};
    }
    return bytes;
}

// Checks that the chunk has this header, and payloads that match its checksums.
Status check_chunk(const ChunkHeader& wanted, std::span<const std::byte> bytes) {
    STOKER_TRY(const ChunkHeader header, domain::parse_chunk_header(bytes));
    if (header != wanted || bytes.size() != header.object_bytes()) {
        return fail(ErrorCode::kCorruption, "is stored with another header than planned");
    }
    bytes = bytes.subspan(header.header_bytes());
    for (const ChunkSample& sample : header.samples) {
        if (crc32c(bytes.first(sample.size_bytes)) != sample.crc32c) {
            return fail(
                ErrorCode::kCorruption,
                fmt::format("sample '{}' does not match its checksum", sample.name));
        }
        bytes = bytes.subspan(sample.size_bytes);
    }
    return {};
}

// Checks the index's key. kAlreadyExists: it has an object that is not an index of chunks.
Status check_index_place(
    Origin& target, const std::vector<ListedObject>& objects, const std::stop_token& stop) {
    constexpr std::uint64_t kMagicBytes = 8;
    const auto index = std::ranges::find(objects, domain::kChunkIndexKey, &ListedObject::key);
    if (index == objects.end()) {
        return {};
    }
    const std::uint64_t length = std::min(kMagicBytes, index->size_bytes);
    STOKER_TRY(const auto begin, read_begin(target, *index, length, stop));
    if (!domain::begins_as_index(begin)) {
        return fail(
            ErrorCode::kAlreadyExists,
            fmt::format(
                "{} has an object 'index' that stoker pack did not write; remove it or choose "
                "another destination",
                target.describe()));
    }
    return {};
}

class PackRun {
public:
    PackRun(
        Origin& source,
        const PackTarget& target,
        const PackOptions& options,
        const OnPackProgress& on_progress,
        const std::stop_token& stop)
        : source_(source),
          target_(target),
          options_(options),
          on_progress_(on_progress),
          stop_(stop) {}

    Result<PackProgress> run() {
        STOKER_TRY_VOID(plan());
        STOKER_TRY_VOID(find_finished());
        STOKER_TRY_VOID(for_each_chunk(options_.threads, chunks_.size(), stop_, [this](auto i) {
            return finished_[i] ? Status{} : write(chunks_[i]);
        }));
        if (options_.verify) {
            STOKER_TRY_VOID(verify());
        }
        std::vector<ChunkHeader> headers;
        for (PlannedChunk& chunk : chunks_) {
            headers.push_back(std::move(chunk.header));
        }
        STOKER_TRY_VOID(target_.writer.put(
            std::string{domain::kChunkIndexKey}, domain::encode_chunk_index(headers)));
        return progress_;
    }

private:
    Status plan() {
        STOKER_TRY(const auto listing, source_.list({}, stop_));
        STOKER_TRY(chunks_, plan_pack(listing.objects(), options_.settings));
        finished_.assign(chunks_.size(), false);
        progress_.chunk_count = static_cast<std::uint32_t>(chunks_.size());
        for (const PlannedChunk& chunk : chunks_) {
            progress_.samples += chunk.header.samples.size();
            progress_.payload_bytes += chunk.header.object_bytes() - chunk.header.header_bytes();
        }
        return {};
    }

    // Finds the chunks that an earlier run of this pack has written; they are kept.
    Status find_finished() {
        STOKER_TRY(const auto listing, target_.origin.list({}, stop_));
        const auto objects = listing.objects();
        STOKER_TRY_VOID(check_index_place(target_.origin, objects, stop_));
        STOKER_TRY(auto headers, read_headers(target_.origin, chunks_of(objects), {}, stop_));
        for (ChunkHeader& header : headers) {
            if (header.number >= chunks_.size() ||
                !plans_equal(header, chunks_[header.number].header)) {
                return fail(
                    ErrorCode::kAlreadyExists,
                    fmt::format(
                        "{} has chunks of another pack (other samples, order, seed or chunk size), "
                        "such as {}; remove them or choose another destination",
                        target_.origin.describe(),
                        domain::chunk_key(header.number)));
            }
            finished_[header.number] = true;
            ++progress_.found;
            chunks_[header.number].header = std::move(header);
        }
        return {};
    }

    Status write(PlannedChunk& chunk) {
        STOKER_TRY(const auto bytes, read_samples(source_, chunk, stop_));
        const Status put = target_.writer.put(domain::chunk_key(chunk.header.number), bytes);
        if (!put) {
            return fail(may_pass(put.error()));
        }
        count(progress_.written);
        return {};
    }

    Status verify() {
        STOKER_TRY(const auto listing, target_.origin.list({}, stop_));
        const auto objects = listing.objects();
        const auto stored = chunks_of(objects);
        if (stored.size() != chunks_.size()) {
            return fail(
                ErrorCode::kUnavailable,
                fmt::format(
                    "{} lists {} of {} chunks after writing them",
                    target_.origin.describe(),
                    stored.size(),
                    chunks_.size()));
        }
        return for_each_chunk(options_.threads, stored.size(), stop_, [&](auto i) -> Status {
            STOKER_TRY(
                const auto bytes, read_object(target_.origin, stored[i], stop_, kSliceBytes));
            if (const Status good = check_chunk(chunks_[i].header, bytes); !good) {
                return fail(good.error().prefixed(
                    fmt::format("'{}' of {}", stored[i].key, target_.origin.describe())));
            }
            count(progress_.verified);
            return {};
        });
    }

    void count(std::uint32_t& what) {
        const std::lock_guard lock{mutex_};
        ++what;
        if (on_progress_) {
            on_progress_(progress_);
        }
    }

    Origin& source_;
    const PackTarget& target_;
    const PackOptions& options_;
    const OnPackProgress& on_progress_;
    const std::stop_token& stop_;
    std::vector<PlannedChunk> chunks_;
    std::vector<bool> finished_;  // by chunk: written by an earlier run
    std::mutex mutex_;
    PackProgress progress_;  // while threads run: guarded by mutex_
};

}  // namespace

Result<PackProgress> run_pack(
    Origin& source,
    const PackTarget& target,
    const PackOptions& options,
    const OnPackProgress& on_progress,
    const std::stop_token& stop) {
    return PackRun{source, target, options, on_progress, stop}.run();
}

Result<PackProgress> rebuild_index(const PackTarget& target, const std::stop_token& stop) {
    STOKER_TRY(const auto listing, target.origin.list({}, stop));
    const auto objects = listing.objects();
    STOKER_TRY_VOID(check_index_place(target.origin, objects, stop));
    STOKER_TRY(const auto headers, read_headers(target.origin, chunks_of(objects), {}, stop));
    if (const Status whole = domain::check_pack(headers); !whole) {
        return fail(whole.error().prefixed(target.origin.describe()));
    }
    STOKER_TRY_VOID(target.writer.put(
        std::string{domain::kChunkIndexKey}, domain::encode_chunk_index(headers)));
    PackProgress progress;
    progress.chunk_count = progress.found = static_cast<std::uint32_t>(headers.size());
    for (const ChunkHeader& header : headers) {
        progress.samples += header.samples.size();
        progress.payload_bytes += header.object_bytes() - header.header_bytes();
    }
    return progress;
}

}  // namespace stoker::sidecar
