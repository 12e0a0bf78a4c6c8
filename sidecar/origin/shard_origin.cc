#include "sidecar/origin/shard_origin.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "common/domain/range_place.h"
#include "sidecar/origin/fetch_all.h"
#include "sidecar/origin/range_origin.h"
#include "sidecar/origin/sleep_unless_stopped.h"

namespace stoker::sidecar {

namespace {

using domain::ListedObject;
using domain::Listing;
using domain::Shard;

constexpr std::size_t kShardsAtOnce = 64;
constexpr std::uint64_t kWindowBytesAtOnce = std::uint64_t{64} << 20U;  // of all shards

// The first sample whose key is not below `key`; sample_count() if there is none.
std::uint64_t lower_bound(const domain::ManifestView& manifest, std::string_view key) {
    std::uint64_t begin = 0;
    std::uint64_t end = manifest.sample_count();
    while (begin < end) {
        const std::uint64_t middle = begin + (end - begin) / 2;
        if (manifest.sample(domain::SampleId{middle}).key < key) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

// The range of the shard's sample ids in an earlier manifest: first, and end (exclusive). Empty:
// the manifest has none, or they belong to another version of the shard.
std::pair<std::uint64_t, std::uint64_t> find_known(
    const domain::ManifestView& known, const ListedObject& shard) {
    const std::string folder = shard.key + "/";
    const std::uint64_t begin = lower_bound(known, folder);
    for (std::uint64_t id = begin; id < known.sample_count(); ++id) {
        const domain::SampleInfo sample = known.sample(domain::SampleId{id});
        if (!sample.key.starts_with(folder)) {
            return {begin, id};
        }
        const auto place = domain::parse_range_place(sample.key, sample.etag);
        if (!place || place->object_key(sample.key) != shard.key ||
            place->object_bytes != shard.size_bytes || place->object_etag != shard.etag) {
            return {};
        }
    }
    return {begin, known.sample_count()};
}

// Reads the indexes of shards side by side: each round reads one window of each.
class ShardListing {
public:
    ShardListing(
        Origin& origin,
        const domain::ShardFormat& format,
        RetryPolicy retry,
        std::uint64_t seed,
        const std::stop_token& stop)
        : origin_(origin),
          format_(format),
          retry_(retry),
          random_(seed),
          stop_(stop) {
        retry_.attempts_max = kWindowTriesMax;
    }

    Status add(const Shard& shard, const domain::ManifestView* known) {
        // Copies known samples, except where an object beside the shard is the index: the samples'
        // ETags do not show whether that object has changed. Rows need no reading anyway.
        if (known != nullptr && !shard.index && format_.format != domain::SampleFormat::kRecords) {
            STOKER_TRY(const bool is_known, copy_known(*known, shard.data));
            if (is_known) {
                return {};
            }
        }
        STOKER_TRY(auto index, domain::open_shard(format_, shard));
        if (index->next()) {
            open_.push_back({shard.to_read(), std::move(index)});
        }
        return {};
    }

    [[nodiscard]] std::size_t open_count() const { return open_.size(); }

    Status read_round() {
        auto windows = read_windows();
        Duration delay{};
        for (std::size_t i = 0; i < open_.size(); ++i) {
            if (windows[i]) {
                STOKER_TRY_VOID(take(open_[i], windows[i]->payload));
            } else if (const auto pause = delay_after(open_[i], windows[i].error())) {
                delay = std::max(delay, *pause);
            } else {
                return fail(std::move(windows[i].error()));
            }
        }
        std::erase_if(open_, [](const Open& shard) { return !shard.index->next(); });
        if (delay > Duration::zero()) {
            sleep_unless_stopped(delay, stop_);
        }
        return {};
    }

    [[nodiscard]] std::uint64_t sample_count() const { return samples_.size(); }

    Listing take() { return std::move(samples_); }

private:
    struct Open {
        ListedObject object;  // the object whose windows are read
        std::unique_ptr<domain::ShardIndex> index;
        std::uint32_t failures = 0;  // failed reads of the next window
    };

    // The next window of each open shard.
    std::vector<Result<OriginBytes>> read_windows() {
        if (format_.format == domain::SampleFormat::kRecords) {  // empty windows
            return std::vector<Result<OriginBytes>>(open_.size(), OriginBytes{});
        }
        std::vector<OriginFetch> wanted;
        for (const Open& shard : open_) {
            const auto window = *shard.index->next(kWindowBytesAtOnce / open_.size());
            wanted.push_back({shard.object.key, shard.object.etag, window.length});
            wanted.back().slice = OriginSlice{window.offset, shard.object.size_bytes};
        }
        return fetch_all(origin_, std::move(wanted), stop_);
    }

    // Copies the shard's samples from the earlier manifest; false: it has none of this version.
    Result<bool> copy_known(const domain::ManifestView& known, const ListedObject& shard) {
        const auto [begin, end] = find_known(known, shard);
        for (std::uint64_t id = begin; id < end; ++id) {
            const domain::SampleInfo sample = known.sample(domain::SampleId{id});
            STOKER_TRY_VOID(samples_.add(sample.key, sample.size_bytes, sample.etag));
        }
        return begin < end;
    }

    Status take(Open& shard, std::span<const std::byte> window) {
        shard.failures = 0;
        const Status taken = shard.index->take(window, samples_);
        return taken ? taken : fail(taken.error().prefixed(origin_.describe()));
    }

    // Delay before a window is read again; nullopt: give up.
    std::optional<Duration> delay_after(Open& shard, const Error& error) {
        return next_delay(retry_, {++shard.failures, is_retryable(error.code)}, random_);
    }

    Origin& origin_;
    const domain::ShardFormat& format_;
    RetryPolicy retry_;
    Prng random_;  // for jitter of the delays
    const std::stop_token& stop_;
    std::vector<Open> open_;
    Listing samples_;
};

class ShardedFormat final : public RangeFormat {
public:
    ShardedFormat(
        domain::ShardFormat format,
        RetryPolicy retry,
        std::uint64_t seed,
        std::optional<std::uint64_t> memory_max)
        : format_(std::move(format)),
          name_(format_.describe()),
          retry_(retry),
          seed_(seed),
          memory_max_(memory_max) {}

    [[nodiscard]] std::string_view name() const override { return name_; }

    Result<Listing> list(
        Origin& origin,
        const Listing& objects,
        const domain::ManifestView* known,
        const std::function<void(std::uint64_t)>& progress,
        const std::stop_token& stop) const override;

    [[nodiscard]] std::optional<SampleRange> find(const OriginFetch& sample) const override {
        const auto place = domain::parse_range_place(sample.key, sample.etag);
        if (!place) {
            return std::nullopt;
        }
        return SampleRange{
            {std::string{place->object_key(sample.key)},
             std::string{place->object_etag},
             place->object_bytes},
            place->offset,
            place->crc32c};
    }

private:
    [[nodiscard]] Status check_memory(const std::vector<Shard>& shards) const;

    const domain::ShardFormat format_;
    const std::string name_;
    const RetryPolicy retry_;
    const std::uint64_t seed_;
    const std::optional<std::uint64_t> memory_max_;
};

// Fails early; otherwise the container would be killed for its memory and restart, for ever.
Status ShardedFormat::check_memory(const std::vector<Shard>& shards) const {
    if (!memory_max_ || format_.format != domain::SampleFormat::kRecords) {
        return {};
    }
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    for (const Shard& shard : shards) {
        const std::uint64_t count = shard.data.size_bytes / format_.rows.bytes;
        rows += count;
        bytes += domain::listed_bytes(shard.data, count);
    }
    if (bytes > *memory_max_ - *memory_max_ / 4) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format(
                "{} rows need at least {} MB of memory to be listed, and this container has {} MB: "
                "raise its limit (chart value sidecar.resources.limits.memory), or let "
                "records.bytes be several rows",
                rows,
                bytes / 1'000'000,
                *memory_max_ / 1'000'000));
    }
    return {};
}

Result<Listing> ShardedFormat::list(
    Origin& origin,
    const Listing& objects,
    const domain::ManifestView* known,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) const {
    auto shards = domain::find_shards(format_, objects);
    if (!shards) {
        return fail(shards.error().prefixed(origin.describe()));
    }
    STOKER_TRY_VOID(check_memory(*shards));
    ShardListing listing{origin, format_, retry_, seed_, stop};
    auto next = shards->begin();
    while (next != shards->end() || listing.open_count() > 0) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::kCancelled, "stopped");
        }
        if (next == shards->end() || listing.open_count() == kShardsAtOnce) {
            STOKER_TRY_VOID(listing.read_round());
        } else if (const Status added = listing.add(*next++, known); !added) {
            return fail(added.error().prefixed(origin.describe()));
        }
        if (progress) {
            progress(listing.sample_count());
        }
    }
    if (listing.sample_count() == 0) {
        return fail(domain::no_samples(shards->size()).prefixed(origin.describe()));
    }
    return listing.take();
}

}  // namespace

std::unique_ptr<Origin> make_shard_origin(
    std::unique_ptr<Origin> shards,
    domain::ShardFormat format,
    RetryPolicy retry,
    std::uint64_t seed,
    ChunkReads::Limits limits,
    std::optional<std::uint64_t> memory_max) {
    return make_range_origin(
        std::move(shards),
        std::make_unique<const ShardedFormat>(std::move(format), retry, seed, memory_max),
        limits);
}

}  // namespace stoker::sidecar
