#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "sidecar/attached/cached_dataset.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/make_origin.h"

namespace stoker::s3 {

// The datasets that are in S3, and the access to their origins. Thread-safe after make().
class Places {
public:
    // Leaves out datasets with another kind of origin, with a warning. Forwards requests for
    // datasets in shards: the cache holds their samples, not their objects. `clock` must outlive
    // the result. kInvalidArgument: an origin's settings are wrong, or no dataset can be served.
    static Result<std::unique_ptr<Places>> make(
        const sidecar::SidecarConfig& config,
        const sidecar::Environment& environment,
        const Clock& clock);

    [[nodiscard]] const std::vector<std::unique_ptr<attached::CachedDataset>>& datasets() const {
        return datasets_;
    }

    [[nodiscard]] const sidecar::S3Location& location_of(
        const attached::CachedDataset& dataset) const {
        return origins_[dataset.index()].location;
    }

    // The dataset with the longest prefix of the key; nullptr: none.
    [[nodiscard]] attached::CachedDataset* dataset_of(
        std::string_view bucket, std::string_view key) const;

    // Where a request for this bucket and key is forwarded: to the origin of the key's dataset,
    // else of the first dataset in the bucket, else of the first dataset.
    [[nodiscard]] const sidecar::S3Access& origin_of(
        std::string_view bucket, std::string_view key) const;

private:
    std::vector<std::unique_ptr<attached::CachedDataset>> datasets_;
    std::vector<sidecar::S3Access> origins_;  // by the dataset's index, then of other datasets
};

}  // namespace stoker::s3
