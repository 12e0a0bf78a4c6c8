#include "sidecar/s3/places.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "common/log/log.h"

namespace stoker::s3 {

namespace {

// An origin that reads samples in chunks; nullptr: the dataset's samples are objects or blocks.
Result<std::unique_ptr<sidecar::Origin>> open_packed(
    const sidecar::SourceConfig& source,
    const sidecar::Environment& environment,
    const Clock& clock) {
    if (source.format != domain::SampleFormat::kChunks) {
        return nullptr;
    }
    return sidecar::make_origin(
        source.uri, sidecar::options_of(source), environment, clock, std::random_device{}());
}

constexpr std::string_view kProgram = "stoker-s3";  // name told to the sidecar

}  // namespace

Result<std::unique_ptr<Places>> Places::make(
    const sidecar::SidecarConfig& config,
    const sidecar::Environment& environment,
    const Clock& clock) {
    auto places = std::make_unique<Places>();
    std::vector<sidecar::S3Access> passed_through;  // datasets whose samples are no objects
    for (const sidecar::DatasetConfig& dataset : config.datasets) {
        if (!dataset.source.uri.starts_with("s3://")) {
            log::warning(
                "not served over S3: its origin is not S3",
                {{"dataset", dataset.name}, {"uri", dataset.source.uri}});
            continue;
        }
        STOKER_TRY(
            sidecar::S3Access origin,
            sidecar::resolve_s3(
                dataset.source.uri, sidecar::options_of(dataset.source), environment, clock));
        if (domain::has_shards(dataset.source.format)) {
            log::info(
                "shards are read at the origin, because the cache has their samples",
                {{"dataset", dataset.name}});
            passed_through.push_back(std::move(origin));
            continue;
        }
        STOKER_TRY(auto packed, open_packed(dataset.source, environment, clock));
        places->datasets_.push_back(std::make_unique<attached::CachedDataset>(
            places->datasets_.size(), dataset, std::string{kProgram}, std::move(packed)));
        places->origins_.push_back(std::move(origin));
    }
    if (places->datasets_.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "no dataset can be served over S3: each has another origin than s3://, or format tar, "
            "records, megatron or tfrecord");
    }
    std::ranges::move(passed_through, std::back_inserter(places->origins_));
    return places;
}

attached::CachedDataset* Places::dataset_of(std::string_view bucket, std::string_view key) const {
    attached::CachedDataset* best = nullptr;
    for (const auto& dataset : datasets_) {
        const sidecar::S3Location& location = location_of(*dataset);
        const bool is_longer =
            best == nullptr || location.prefix.size() > location_of(*best).prefix.size();
        if (location.bucket == bucket && key.starts_with(location.prefix) && is_longer) {
            best = dataset.get();
        }
    }
    return best;
}

const sidecar::S3Access& Places::origin_of(std::string_view bucket, std::string_view key) const {
    if (const attached::CachedDataset* dataset = dataset_of(bucket, key)) {
        return origins_[dataset->index()];
    }
    const auto found = std::ranges::find_if(origins_, [&](const sidecar::S3Access& origin) {
        return origin.location.bucket == bucket;
    });
    return found == origins_.end() ? origins_.front() : *found;
}

}  // namespace stoker::s3
