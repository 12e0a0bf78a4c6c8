#include "operator/kube/json.h"

#include <utility>

#include <cpprest/json.h>

namespace stoker::control {

Json::Json()
    : value_(std::make_shared<const web::json::value>()) {}

Json::Json(web::json::value value)
    : value_(std::make_shared<const web::json::value>(std::move(value))) {}

Result<Json> Json::parse(std::string_view text) {
    std::error_code error;
    auto parsed = web::json::value::parse(std::string(text), error);
    if (error) {
        return fail(ErrorCode::kInvalidArgument, "not JSON: " + error.message());
    }
    return Json(std::move(parsed));
}

std::string Json::text() const {
    return value_->serialize();
}

bool Json::operator==(const Json& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
}

const web::json::value* find_at(const web::json::value& root, JsonPath path) {
    const web::json::value* at = &root;
    for (const std::string_view key : path) {
        if (!at->is_object()) {
            return nullptr;
        }
        const auto& object = at->as_object();
        const auto found = object.find(std::string(key));
        if (found == object.end()) {
            return nullptr;
        }
        at = &found->second;
    }
    return at;
}

std::string string_at(const web::json::value& root, JsonPath path) {
    const auto* found = find_at(root, path);
    return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

std::optional<std::int64_t> integer_at(const web::json::value& root, JsonPath path) {
    const auto* found = find_at(root, path);
    if (found == nullptr || !found->is_integer() || !found->as_number().is_int64()) {
        return std::nullopt;
    }
    return found->as_number().to_int64();
}

}  // namespace stoker::control
