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

// An object from the server, with the fields that all kinds share. managedFields are dropped.
struct Object {
    std::string api_version;  // "batch/v1"
    std::string kind;         // "Job"
    ObjectKey key;
    std::string uid;
    std::string resource_version;
    Json raw;
    // The result of WatchOptions::transform for `raw`. Null without a transform.
    std::shared_ptr<const void> value{};
};

// Parses the head of an object. `api_version` and `kind` are defaults for items of lists, which may
// lack them. kInvalidArgument: not an object with a metadata.name.
Result<Object> read_object(
    web::json::value&& raw, std::string_view api_version = {}, std::string_view kind = {});
Result<Object> read_object(const Json& raw);

// Since Kubernetes 1.35 resource versions of one resource may be compared as integers (KEP-5504).
// nullopt if one is not a number: then only equality is meaningful.
std::optional<std::strong_ordering> compare_resource_versions(
    std::string_view left, std::string_view right);

}  // namespace stoker::control
