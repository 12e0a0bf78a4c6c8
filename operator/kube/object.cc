#include "operator/kube/object.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>

namespace stoker::control {

namespace {

bool is_number(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_leading_zeros(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    return text;
}

// managedFields can be most of an object's bytes, and the operator does not read them.
void drop_managed_fields(web::json::value& raw) {
    if (find_at(raw, {"metadata", "managedFields"}) != nullptr) {
        raw.at("metadata").as_object().erase("managedFields");
    }
}

}  // namespace

Result<Object> read_object(
    web::json::value&& raw, std::string_view api_version, std::string_view kind) {
    Object object;
    object.key.name = string_at(raw, {"metadata", "name"});
    if (object.key.name.empty()) {
        return fail(ErrorCode::kInvalidArgument, "not an object: metadata.name is missing");
    }
    object.key.ns = string_at(raw, {"metadata", "namespace"});
    object.uid = string_at(raw, {"metadata", "uid"});
    object.resource_version = string_at(raw, {"metadata", "resourceVersion"});
    object.api_version = string_at(raw, {"apiVersion"});
    object.kind = string_at(raw, {"kind"});
    if (object.api_version.empty()) {
        object.api_version = api_version;
    }
    if (object.kind.empty()) {
        object.kind = kind;
    }
    drop_managed_fields(raw);
    object.raw = Json(std::move(raw));
    return object;
}

Result<Object> read_object(const Json& raw) {
    return read_object(web::json::value(raw.value()));
}

std::optional<std::strong_ordering> compare_resource_versions(
    std::string_view left, std::string_view right) {
    if (!is_number(left) || !is_number(right)) {
        return std::nullopt;
    }
    left = without_leading_zeros(left);
    right = without_leading_zeros(right);
    if (left.size() != right.size()) {
        return left.size() <=> right.size();
    }
    return left.compare(right) <=> 0;
}

}  // namespace stoker::control
