#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

namespace stoker::control {

// An object as the server sent it, with what the machinery itself needs to know about it.
// managedFields are dropped.
struct Object {
    std::string api_version;  // "batch/v1"
    std::string kind;         // "Job"
    ObjectKey key;
    std::string uid;
    std::string resource_version;
    Json raw;
    // What WatchOptions::transform made of `raw`, for whoever set it. Null without one.
    std::shared_ptr<const void> value{};
};

// Reads the head of an object. `api_version` and `kind` fill in for items of lists, which may lack
// them. Errors: kInvalidArgument when it is not an object with a metadata.name.
Result<Object> read_object(
    web::json::value&& raw, std::string_view api_version = {}, std::string_view kind = {});
Result<Object> read_object(const Json& raw);

// Since Kubernetes 1.35 resource versions of one resource may be compared as integers (KEP-5504).
// nullopt where one of them is not a number: then only equality means anything.
std::optional<std::strong_ordering> compare_resource_versions(
    std::string_view left, std::string_view right);

}  // namespace stoker::control
