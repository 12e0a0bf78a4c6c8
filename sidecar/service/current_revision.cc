#include "sidecar/service/current_revision.h"

#include <cpprest/json.h>

#include "common/domain/node_directory.h"
#include "common/domain/parse_revision.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kFileBytesMax = 64U << 10U;

std::string text_field(const web::json::value& json, const char* name) {
    return json.has_string_field(name) ? json.at(name).as_string() : std::string{};
}

}  // namespace

std::string encode_current(const CurrentRevision& current) {
    auto json = web::json::value::object();
    json["revision"] = web::json::value::string(domain::to_string(current.revision));
    json["source"] = web::json::value::string(current.source);
    json["jobUid"] = web::json::value::string(current.job_uid);
    json["attemptUid"] = web::json::value::string(current.attempt_uid);
    json["taken"] = web::json::value::boolean(current.is_taken);
    return json.serialize() + "\n";
}

std::optional<CurrentRevision> decode_current(const std::string& text) {
    std::error_code error;
    const auto json = web::json::value::parse(text, error);
    if (error || !json.is_object()) {
        return std::nullopt;
    }
    const auto revision = domain::parse_revision(text_field(json, "revision"));
    if (!revision) {
        return std::nullopt;
    }
    return CurrentRevision{
        *revision,
        text_field(json, "source"),
        text_field(json, "jobUid"),
        text_field(json, "attemptUid"),
        json.has_boolean_field("taken") && json.at("taken").as_bool()};
}

std::optional<CurrentRevision> load_current(Device& device, const std::string& directory) {
    const auto bytes = read_file(device, join_path(directory, domain::kCurrentFile), kFileBytesMax);
    if (!bytes) {
        return std::nullopt;
    }
    return decode_current({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

Status save_current(Device& device, const std::string& directory, const CurrentRevision& current) {
    const std::string text = encode_current(current);
    return replace_file(
        device,
        join_path(directory, domain::kCurrentFile),
        std::as_bytes(std::span{text}),
        Durability::kPower);
}

}  // namespace stoker::sidecar
