#include "operator/api/json_reader.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/quantity.h"
#include "operator/api/time_format.h"

namespace stoker::control {

namespace {

using web::json::value;

}  // namespace

JsonReader::JsonReader(const value* object, std::string path, ReadLog& log)
    : value_(object),
      path_(std::move(path)),
      log_(&log) {}

std::string JsonReader::path_of(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
}

void JsonReader::complain(const std::string& name, std::string_view what) const {
    std::string error = fmt::format("{}: {}", path_of(name), what);
    // Several fields may be below the same wrong value; report it once.
    if (std::ranges::find(log_->errors, error) == log_->errors.end()) {
        log_->errors.push_back(std::move(error));
    }
}

// The field, or null when it is absent or null.
const value* JsonReader::find(const std::string& name) const {
    if (log_->recording) {
        log_->fields.insert(path_of(name));
    }
    if (value_ == nullptr || !value_->has_field(name)) {
        return nullptr;
    }
    const value& found = value_->at(name);
    return found.is_null() ? nullptr : &found;
}

const value* JsonReader::find(
    const std::string& name, bool (value::*fits)() const, std::string_view what) const {
    const value* found = find(name);
    if (found != nullptr && !(found->*fits)()) {
        complain(name, fmt::format("must be {}", what));
        return nullptr;
    }
    return found;
}

JsonReader JsonReader::object(const std::string& name) const {
    return {find(name, &value::is_object, "an object"), path_of(name), *log_};
}

std::string JsonReader::text(const std::string& name, std::string fallback) const {
    return maybe_text(name).value_or(std::move(fallback));
}

std::optional<std::string> JsonReader::maybe_text(const std::string& name) const {
    const value* found = find(name, &value::is_string, "a text");
    return found == nullptr ? std::nullopt : std::optional(found->as_string());
}

std::int64_t JsonReader::integer(const std::string& name, std::int64_t fallback) const {
    return maybe_integer(name).value_or(fallback);
}

std::optional<std::int64_t> JsonReader::maybe_integer(const std::string& name) const {
    const value* found = find(name, &value::is_number, "a number");
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->as_number().is_int64()) {
        complain(name, "must be a whole number of 64 bits");
        return std::nullopt;
    }
    return found->as_number().to_int64();
}

std::optional<double> JsonReader::maybe_number(const std::string& name) const {
    const value* found = find(name, &value::is_number, "a number");
    return found == nullptr ? std::nullopt : std::optional(found->as_number().to_double());
}

bool JsonReader::flag(const std::string& name, bool fallback) const {
    return maybe_flag(name).value_or(fallback);
}

std::optional<bool> JsonReader::maybe_flag(const std::string& name) const {
    const value* found = find(name, &value::is_boolean, "true or false");
    return found == nullptr ? std::nullopt : std::optional(found->as_bool());
}

std::string JsonReader::int_or_text(const std::string& name, std::string fallback) const {
    const value* found = find(name);
    if (found == nullptr) {
        return fallback;
    }
    if (found->is_string()) {
        return found->as_string();
    }
    if (found->is_number() && found->as_number().is_int64()) {
        return std::to_string(found->as_number().to_int64());
    }
    complain(name, "must be a text or a whole number");
    return fallback;
}

std::optional<Bytes> JsonReader::maybe_bytes(const std::string& name) const {
    const std::string written = int_or_text(name);
    if (written.empty()) {
        return std::nullopt;
    }
    Result<Bytes> bytes = parse_bytes(written);
    if (!bytes) {
        complain(name, bytes.error().message);
        return std::nullopt;
    }
    return *bytes;
}

std::optional<WallTime> JsonReader::maybe_time(const std::string& name) const {
    const std::optional<std::string> written = maybe_text(name);
    if (!written) {
        return std::nullopt;
    }
    Result<WallTime> time = parse_time(*written);
    if (!time) {
        complain(name, time.error().message);
        return std::nullopt;
    }
    return *time;
}

std::vector<std::string> JsonReader::texts(const std::string& name) const {
    std::vector<std::string> result;
    const value* list = find(name, &value::is_array, "a list");
    if (list == nullptr) {
        return result;
    }
    for (const value& item : list->as_array()) {
        if (item.is_string()) {
            result.push_back(item.as_string());
        } else {
            complain(name, "must be a list of texts");
        }
    }
    return result;
}

TextMap JsonReader::text_map(const std::string& name) const {
    TextMap result;
    const value* map = find(name, &value::is_object, "an object");
    if (map == nullptr) {
        return result;
    }
    for (const auto& [key, item] : map->as_object()) {
        if (item.is_string()) {
            result.emplace(key, item.as_string());
        } else {
            complain(name, fmt::format("'{}' must be a text", key));
        }
    }
    return result;
}

TextMap JsonReader::quantity_map(const std::string& name) const {
    TextMap result;
    const JsonReader map = object(name);
    if (map.value_ == nullptr) {
        return result;
    }
    for (const auto& field : map.value_->as_object()) {
        result.emplace(field.first, map.int_or_text(field.first));
    }
    return result;
}

Json JsonReader::raw(const std::string& name) const {
    if (log_->recording) {
        log_->fields.insert(path_of(name) + ".*");
    }
    const value* found = find(name);
    return found == nullptr ? Json{} : Json{*found};
}

std::vector<Json> JsonReader::items(const std::string& name) const {
    const value* list = find(name, &value::is_array, "a list");
    return list == nullptr ? std::vector<Json>{}
                           : std::vector<Json>(list->as_array().begin(), list->as_array().end());
}

std::vector<Json> JsonReader::raw_items(const std::string& name) const {
    std::vector<Json> result;
    each(name, [&](const JsonReader& item) { result.push_back(item.raw_self()); });
    return result;
}

Json JsonReader::raw_self() const {
    if (log_->recording) {
        log_->fields.insert(path_ + ".*");
    }
    return value_ == nullptr ? Json{} : Json{*value_};
}

void JsonReader::each(
    const std::string& name, const std::function<void(const JsonReader&)>& visit) const {
    const value* list = find(name, &value::is_array, "a list");
    if (log_->recording) {
        visit(JsonReader{nullptr, path_of(name) + "[]", *log_});
    }
    if (list == nullptr) {
        return;
    }
    std::size_t index = 0;
    for (const value& item : list->as_array()) {
        const std::string place = fmt::format("{}[{}]", name, index++);
        if (item.is_object()) {
            visit(JsonReader{&item, path_of(place), *log_});
        } else {
            complain(place, "must be an object");
        }
    }
}

Status read_json(const Json& json, const std::function<void(const JsonReader&)>& read) {
    if (!json.value().is_object()) {
        return fail(ErrorCode::kInvalidArgument, "not a JSON object");
    }
    ReadLog log;
    read(JsonReader{&json.value(), "", log});
    if (!log.errors.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(log.errors, "; ")));
    }
    return {};
}

}  // namespace stoker::control
