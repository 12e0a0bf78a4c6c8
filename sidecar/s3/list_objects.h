#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/domain/block_format.h"
#include "common/domain/manifest.h"
#include "sidecar/s3/s3_call.h"

// ListObjectsV2 from a manifest. Pure.
namespace stoker::s3 {

inline constexpr std::uint64_t kListKeysMax = 1000;

// A parsed request for one page. Keys are whole keys, with the dataset's prefix.
struct ListQuery {
    std::string bucket;
    std::string prefix;
    std::string delimiter;
    std::string start_after;
    std::string token;  // as sent; "": the first page
    // Decoded from `token`: the page begins after this key, or after all keys that begin with it.
    std::string token_key;
    bool token_is_prefix = false;
    std::uint64_t max_keys = kListKeysMax;
    bool url_encoded = false;
};

// Parses a query. nullopt: not a ListObjectsV2 of a bucket, or it has parameters or a continuation
// token that only the origin understands.
std::optional<ListQuery> parse_list_query(const S3Call& call);

// The XML page of a dataset whose objects' keys are `dataset_prefix` + the manifest's key. The
// query's prefix must begin with `dataset_prefix`, so that the page names no other keys.
std::string list_page(
    const ListQuery& query,
    std::string_view dataset_prefix,
    const domain::ManifestView& manifest,
    std::chrono::sys_seconds modified);

// For a `token` made here: the start-after with which the origin continues where the page ended.
std::optional<std::string> start_after_of_token(std::string_view token);

}  // namespace stoker::s3
