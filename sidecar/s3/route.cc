#include "sidecar/s3/route.h"

#include <algorithm>
#include <utility>

#include "common/http/headers.h"
#include "sidecar/attached/find_object.h"
#include "sidecar/s3/list_objects.h"

namespace stoker::s3 {

namespace {

// Whether the call is a GET or HEAD of a whole current object or a range, without anything that
// only the origin understands.
bool is_plain_read(const S3Call& call) {
    const bool is_read = call.head.method == "GET" || call.head.method == "HEAD";
    const bool is_plain_query = std::ranges::all_of(call.query, [](const auto& entry) {
        return entry.first == "x-id" || entry.first.starts_with("X-Amz-");
    });
    const bool has_own_key = std::ranges::any_of(call.head.headers, [](const http::Header& header) {
        constexpr std::string_view kStart = "x-amz-server-side-encryption-customer";
        return http::equal_ignoring_case(
            std::string_view{header.name}.substr(0, kStart.size()), kStart);
    });
    return is_read && is_plain_query && !has_own_key && !call.head.has_body() && !call.key.empty();
}

bool is_write(const S3Call& call) {
    return call.head.method != "GET" && call.head.method != "HEAD" && !call.key.empty();
}

Route::Kind kind_without_files(const attached::CachedDataset& dataset) {
    return dataset.origin() == nullptr ? Route::Kind::kForward : Route::Kind::kNotYet;
}

Route route_list(const S3Call& call, const ListQuery& query, const Places& places) {
    Route route;
    attached::CachedDataset* dataset = places.dataset_of(call.bucket, query.prefix);
    if (dataset == nullptr || dataset->has_writes()) {
        return route;
    }
    const auto files = dataset->files();
    if (files == nullptr) {
        route.kind = kind_without_files(*dataset);
    } else {
        route.kind = Route::Kind::kList;
        route.list = list_page(
            query, places.location_of(*dataset).prefix, files->manifest(), files->modified());
    }
    return route;
}

}  // namespace

Route route_call(const S3Call& call, const Places& places) {
    if (const auto list = parse_list_query(call)) {
        return route_list(call, *list, places);
    }
    Route route;
    attached::CachedDataset* dataset = places.dataset_of(call.bucket, call.key);
    if (dataset != nullptr && is_write(call)) {
        dataset->note_written(call.key);
    }
    if (dataset == nullptr || !is_plain_read(call) || dataset->is_written(call.key)) {
        return route;
    }
    auto files = dataset->files();
    if (files == nullptr) {
        route.kind = kind_without_files(*dataset);
        return route;
    }
    const std::string_view key =
        std::string_view{call.key}.substr(places.location_of(*dataset).prefix.size());
    const auto object = attached::find_object(files->manifest(), key);
    if (!object) {
        return route;
    }
    route.facts = {object->size_bytes, object->etag, files->modified()};
    route.dataset = dataset;
    route.files = std::move(files);
    route.object = *object;
    if (const auto answer = answer_object(call.head, route.facts)) {
        route.kind = Route::Kind::kObject;
        route.answer = *answer;
    }
    return route;
}

}  // namespace stoker::s3
