#include "sidecar/origin/shard_origin.h"

#include <utility>
#include <vector>

#include <fmt/core.h>

#include "common/domain/range_place.h"
#include "common/domain/tar_index.h"
#include "sidecar/origin/fetch_all.h"
#include "sidecar/origin/range_origin.h"

namespace stoker::sidecar {

namespace {

using domain::ListedObject;
using domain::Listing;

constexpr std::size_t kShardsAtOnce = 64;  // each holds one range of at most 1 MiB

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

// The ids of the shard's samples in an earlier manifest: first, and end (exclusive). Empty: it has
// none, or they are of another version of the shard.
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

// Indexes shards side by side: each round reads the next range of headers of each.
class ShardListing {
public:
    ShardListing(Origin& origin, const std::stop_token& stop)
        : origin_(origin),
          stop_(stop) {}

    Status add(ListedObject shard, const domain::ManifestView* known) {
        if (known != nullptr) {
            const auto [begin, end] = find_known(*known, shard);
            for (std::uint64_t id = begin; id < end; ++id) {
                const domain::SampleInfo sample = known->sample(domain::SampleId{id});
                STOKER_TRY_VOID(samples_.add(sample.key, sample.size_bytes, sample.etag));
            }
            if (begin < end) {
                return {};
            }
        }
        STOKER_TRY(auto index, domain::TarIndex::of(shard));
        if (index.next()) {
            open_.push_back({std::move(shard), std::move(index)});
        }
        return {};
    }

    [[nodiscard]] std::size_t open_count() const { return open_.size(); }

    Status read_round() {
        std::vector<OriginFetch> wanted;
        for (const Open& shard : open_) {
            const domain::TarRange window = *shard.index.next();
            wanted.push_back({shard.object.key, shard.object.etag, window.length});
            wanted.back().slice = OriginSlice{window.offset, shard.object.size_bytes};
        }
        auto windows = fetch_all(origin_, std::move(wanted), stop_);
        for (std::size_t i = 0; i < open_.size(); ++i) {
            STOKER_TRY(const OriginBytes window, std::move(windows[i]));
            const Status taken = open_[i].index.take(window.payload, samples_);
            if (!taken) {
                return fail(taken.error().prefixed(origin_.describe()));
            }
        }
        std::erase_if(open_, [](const Open& shard) { return !shard.index.next(); });
        return {};
    }

    [[nodiscard]] std::uint64_t sample_count() const { return samples_.size(); }

    Listing take() { return std::move(samples_); }

private:
    struct Open {
        ListedObject object;
        domain::TarIndex index;
    };

    Origin& origin_;
    const std::stop_token& stop_;
    std::vector<Open> open_;
    Listing samples_;
};

Result<std::vector<ListedObject>> find_shards(const Origin& origin, const Listing& objects) {
    std::vector<ListedObject> shards;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const Listing::Entry object = objects[i];
        if (domain::is_compressed_shard(object.key)) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' of {} is compressed: unpack it first, because the samples of a "
                    "compressed tar file cannot be read one by one",
                    object.key,
                    origin.describe()));
        }
        if (domain::is_tar_shard(object.key)) {
            shards.push_back(
                {std::string{object.key}, object.size_bytes, std::string{object.etag}});
        }
    }
    if (shards.empty()) {
        return fail(
            ErrorCode::kNotFound,
            fmt::format("{} has no object whose key ends in .tar", origin.describe()));
    }
    return shards;
}

class ShardFormat final : public RangeFormat {
public:
    [[nodiscard]] std::string_view name() const override { return "tar shards"; }

    Result<Listing> list(
        Origin& origin,
        const Listing& objects,
        const domain::ManifestView* known,
        const std::function<void(std::uint64_t)>& progress,
        const std::stop_token& stop) const override {
        return list_shards(origin, objects, known, progress, stop);
    }

    [[nodiscard]] std::optional<SampleRange> find(const OriginFetch& sample) const override {
        const auto place = domain::parse_range_place(sample.key, sample.etag);
        if (!place || sample.size_bytes == 0) {
            return std::nullopt;
        }
        return SampleRange{
            {std::string{place->object_key(sample.key)},
             std::string{place->object_etag},
             place->object_bytes},
            place->offset};
    }
};

}  // namespace

Result<Listing> list_shards(
    Origin& origin,
    const Listing& objects,
    const domain::ManifestView* known,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    STOKER_TRY(auto shards, find_shards(origin, objects));
    ShardListing listing{origin, stop};
    auto next = shards.begin();
    while (next != shards.end() || listing.open_count() > 0) {
        while (next != shards.end() && listing.open_count() < kShardsAtOnce) {
            STOKER_TRY_VOID(listing.add(std::move(*next++), known));
        }
        if (listing.open_count() > 0) {
            STOKER_TRY_VOID(listing.read_round());
        }
        if (progress) {
            progress(listing.sample_count());
        }
    }
    return listing.take();
}

std::unique_ptr<Origin> make_shard_origin(
    std::unique_ptr<Origin> shards, ChunkReads::Limits limits) {
    return make_range_origin(std::move(shards), std::make_unique<const ShardFormat>(), limits);
}

}  // namespace stoker::sidecar
