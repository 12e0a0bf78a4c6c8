#include "operator/api/json.h"

#include <cmath>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

namespace stoker::control {

namespace {

using web::json::value;

template <class N>
value decimal(N number) {
    const std::string text = fmt::format("{}", number);
    return std::isfinite(number) ? value::parse(text) : value::string(text);
}

value array_of(const std::vector<Json>& items) {
    std::vector<value> values;
    values.reserve(items.size());
    for (const Json& item : items) {
        values.push_back(item.value());
    }
    return value::array(std::move(values));
}

value object_of(const TextMap& texts) {
    value object = value::object();
    for (const auto& [name, text] : texts) {
        object[name] = value::string(text);
    }
    return object;
}

void merge(value& under, const value& over) {
    if (under.is_object() && over.is_object()) {
        for (const auto& [name, item] : over.as_object()) {
            merge(under[name], item);
        }
    } else if (under.is_array() && over.is_array()) {
        for (const value& item : over.as_array()) {
            under[under.size()] = item;
        }
    } else {
        under = over;
    }
}

}  // namespace

Json::Json()
    : value_([] {
          static const auto kNull = std::make_shared<const web::json::value>();
          return kNull;
      }()) {}

Json::Json(web::json::value value)
    : value_(std::make_shared<const web::json::value>(std::move(value))) {}

Json::Json(std::string_view text)
    : Json(value::string(std::string{text})) {}

Json::Json(double number)
    : Json(decimal(number)) {}

Json::Json(float number)
    : Json(decimal(number)) {}

Json::Json(const TextMap& texts)
    : Json(object_of(texts)) {}

Json::Json(const std::vector<Json>& items)
    : Json(array_of(items)) {}

Json Json::of_flag(bool flag) {
    return Json(value::boolean(flag));
}

Json Json::of_integer(std::int64_t number) {
    return Json(value::number(number));
}

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

bool Json::empty() const {
    const bool has_size = value_->is_object() || value_->is_array();
    return value_->is_null() || (has_size && value_->size() == 0) ||
           (value_->is_string() && value_->as_string().empty());
}

bool Json::operator==(const Json& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
}

Json json_object(const std::vector<JsonMember>& members) {
    value object = value::object();
    for (const JsonMember& member : members) {
        const bool left_out = member.presence == Presence::kUnlessEmpty ? member.value.empty()
                              : member.presence == Presence::kUnlessNull
                                  ? member.value.value().is_null()
                                  : false;
        if (!left_out) {
            object[member.name] = member.value.value();
        }
    }
    return Json(std::move(object));
}

Json merged(const Json& under, const Json& over) {
    value result = under.value();
    if (!over.value().is_null()) {
        merge(result, over.value());
    }
    return Json(std::move(result));
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
