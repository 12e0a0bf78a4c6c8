#include "operator/api/json_writer.h"

#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/time_format.h"

namespace stoker::control {

namespace {

using web::json::value;

// Fields of `over` win, objects are merged, lists are joined.
void merge(value& under, const value& over) {
    for (const auto& [name, item] : over.as_object()) {
        if (!under.has_field(name)) {
            under[name] = item;
        } else if (under[name].is_object() && item.is_object()) {
            merge(under[name], item);
        } else if (under[name].is_array() && item.is_array()) {
            for (const value& element : item.as_array()) {
                under[name][under[name].size()] = element;
            }
        } else {
            under[name] = item;
        }
    }
}

}  // namespace

JsonWriter::JsonWriter()
    : value_(std::make_unique<value>(value::object())) {}

JsonWriter::~JsonWriter() = default;
JsonWriter::JsonWriter(JsonWriter&& other) noexcept = default;
JsonWriter& JsonWriter::operator=(JsonWriter&& other) noexcept = default;

JsonWriter& JsonWriter::text(const std::string& name, const std::string& text) {
    if (!text.empty()) {
        (*value_)[name] = value::string(text);
    }
    return *this;
}

JsonWriter& JsonWriter::number(const std::string& name, std::int64_t number) {
    (*value_)[name] = value::number(number);
    return *this;
}

JsonWriter& JsonWriter::decimal(const std::string& name, double number) {
    return raw(name, RawJson{fmt::format("{}", number)});
}

JsonWriter& JsonWriter::flag(const std::string& name, bool flag) {
    (*value_)[name] = value::boolean(flag);
    return *this;
}

JsonWriter& JsonWriter::time(const std::string& name, const std::optional<WallTime>& time) {
    return time ? text(name, format_time(*time)) : *this;
}

JsonWriter& JsonWriter::texts(const std::string& name, const std::vector<std::string>& values) {
    for (const std::string& item : values) {
        append_text(name, item);
    }
    return *this;
}

JsonWriter& JsonWriter::text_map(const std::string& name, const TextMap& values) {
    JsonWriter map;
    for (const auto& [key, text] : values) {
        (*map.value_)[key] = value::string(text);
    }
    return object(name, map);
}

JsonWriter& JsonWriter::raw(const std::string& name, const RawJson& raw) {
    if (!raw.value().empty()) {
        (*value_)[name] = value::parse(raw.value());
    }
    return *this;
}

JsonWriter& JsonWriter::object(const std::string& name, const JsonWriter& writer) {
    return writer.empty() ? *this : required_object(name, writer);
}

JsonWriter& JsonWriter::required_object(const std::string& name, const JsonWriter& writer) {
    (*value_)[name] = *writer.value_;
    return *this;
}

void JsonWriter::append_value(const std::string& name, value&& item) {
    if (!value_->has_field(name)) {
        (*value_)[name] = value::array();
    }
    value& list = (*value_)[name];
    list[list.size()] = std::move(item);
}

JsonWriter& JsonWriter::append(const std::string& name, const JsonWriter& item) {
    append_value(name, value{*item.value_});
    return *this;
}

JsonWriter& JsonWriter::append_raw(const std::string& name, const RawJson& item) {
    append_value(name, value::parse(item.value()));
    return *this;
}

JsonWriter& JsonWriter::append_number(const std::string& name, std::int64_t item) {
    append_value(name, value::number(item));
    return *this;
}

JsonWriter& JsonWriter::append_text(const std::string& name, const std::string& item) {
    append_value(name, value::string(item));
    return *this;
}

JsonWriter& JsonWriter::overlay(const RawJson& object) {
    if (!object.value().empty()) {
        merge(*value_, value::parse(object.value()));
    }
    return *this;
}

bool JsonWriter::empty() const {
    return value_->size() == 0;
}

std::string JsonWriter::serialize() const {
    return value_->serialize();
}

namespace {

JsonWriter write_owner(const OwnerReference& owner) {
    JsonWriter writer;
    writer.text("apiVersion", owner.api_version)
        .text("kind", owner.kind)
        .text("name", owner.name)
        .text("uid", owner.uid)
        .flag("controller", owner.controller)
        .flag("blockOwnerDeletion", owner.blocks_deletion);
    return writer;
}

}  // namespace

JsonWriter write_meta(const ObjectMeta& meta) {
    JsonWriter writer;
    writer.text("name", meta.name)
        .text("namespace", meta.ns)
        .text_map("labels", meta.labels)
        .text_map("annotations", meta.annotations)
        .list("ownerReferences", meta.owners, write_owner);
    return writer;
}

JsonWriter write_condition(const Condition& condition) {
    JsonWriter writer;
    writer.text("type", condition.type)
        .text("status", std::string{to_string(condition.status)})
        .number("observedGeneration", condition.observed_generation)
        .time("lastTransitionTime", condition.last_transition)
        .text("reason", condition.reason);
    if (condition.message.empty()) {
        writer.raw("message", RawJson{"\"\""});  // required, even when there is nothing to say
    }
    writer.text("message", condition.message);
    return writer;
}

std::string status_body(
    std::string_view kind,
    const ObjectMeta& meta,
    const JsonWriter& status,
    std::string_view api_version,
    const std::string& resource_version) {
    JsonWriter identity;
    identity.text("name", meta.name)
        .text("namespace", meta.ns)
        .text("uid", meta.uid)
        .text("resourceVersion", resource_version);
    JsonWriter body;
    body.text("apiVersion", std::string{api_version})
        .text("kind", std::string{kind})
        .object("metadata", identity)
        .required_object("status", status);
    return body.serialize();
}

}  // namespace stoker::control
