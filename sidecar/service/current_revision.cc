#include "sidecar/service/current_revision.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <cpprest/json.h>

#include "common/domain/node_directory.h"
#include "common/domain/parse_revision.h"

namespace stoker::sidecar {

namespace {

using std::chrono::seconds;

constexpr std::uint64_t kFileBytesMax = 64U << 10U;
constexpr std::int64_t kSecondsMax = std::int64_t{1} << 33U;  // WallTime holds more

std::string text_field(const web::json::value& json, const char* name) {
    return json.has_string_field(name) ? json.at(name).as_string() : std::string{};
}

std::optional<WallTime> time_field(const web::json::value& json, const char* name) {
    if (!json.has_integer_field(name)) {
        return std::nullopt;
    }
    const auto value = json.at(name).as_number();
    const bool is_time =
        value.is_int64() && value.to_int64() >= 0 && value.to_int64() < kSecondsMax;
    return is_time ? std::optional{WallTime{seconds{value.to_int64()}}} : std::nullopt;
}

// Texts of the array, at most kOtherAttemptsMax; other values are left out.
std::vector<std::string> attempts_field(const web::json::value& json, const char* name) {
    std::vector<std::string> attempts;
    if (!json.has_array_field(name)) {
        return attempts;
    }
    for (const web::json::value& attempt : json.at(name).as_array()) {
        if (attempt.is_string() && attempts.size() < CurrentRevision::kOtherAttemptsMax) {
            attempts.push_back(attempt.as_string());
        }
    }
    return attempts;
}

}  // namespace

bool CurrentRevision::is_of(const std::string& uid) const {
    return !uid.empty() && (uid == attempt_uid || std::ranges::count(other_attempts, uid) > 0);
}

CurrentRevision adopted_by(
    CurrentRevision current, const std::string& job_uid, const std::string& attempt_uid) {
    auto& others = current.other_attempts;
    const std::string before = std::exchange(current.attempt_uid, attempt_uid);
    current.job_uid = job_uid;
    std::erase(others, attempt_uid);
    if (!before.empty() && before != attempt_uid) {
        others.insert(others.begin(), before);
    }
    others.resize(std::min(others.size(), CurrentRevision::kOtherAttemptsMax));
    return current;
}

std::optional<Duration> age_of(const CurrentRevision& current, WallTime now) {
    return current.listed_at && *current.listed_at <= now
               ? std::optional<Duration>{now - *current.listed_at}
               : std::nullopt;
}

std::string encode_current(const CurrentRevision& current) {
    auto json = web::json::value::object();
    json["revision"] = web::json::value::string(domain::to_string(current.revision));
    json["source"] = web::json::value::string(current.source);
    json["jobUid"] = web::json::value::string(current.job_uid);
    json["attemptUid"] = web::json::value::string(current.attempt_uid);
    json["taken"] = web::json::value::boolean(current.is_taken);
    if (!current.other_attempts.empty()) {
        std::vector<web::json::value> others;
        std::ranges::transform(current.other_attempts, std::back_inserter(others), [](auto& uid) {
            return web::json::value::string(uid);
        });
        json["otherAttemptUids"] = web::json::value::array(std::move(others));
    }
    if (current.listed_at) {
        const auto at = std::chrono::floor<seconds>(current.listed_at->time_since_epoch());
        json["listedAt"] = web::json::value::number(std::int64_t{at.count()});
    }
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
        json.has_boolean_field("taken") && json.at("taken").as_bool(),
        time_field(json, "listedAt"),
        attempts_field(json, "otherAttemptUids")};
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

void forget_age(Device& device, const std::string& directory, domain::RevisionId revision) {
    auto current = load_current(device, directory);
    if (!current || current->revision != revision || !current->listed_at) {
        return;
    }
    current->listed_at.reset();
    [[maybe_unused]] const auto saved = save_current(device, directory, *current);
}

}  // namespace stoker::sidecar
