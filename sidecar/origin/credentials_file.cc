#include "sidecar/origin/credentials_file.h"

#include <system_error>
#include <tuple>
#include <utility>

#include <cpprest/json.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/guarded.h"
#include "sidecar/origin/small_file.h"
#include "sidecar/origin/sts_answer.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::seconds{1};
constexpr Duration kReadBefore = std::chrono::minutes{1};

// Empty where there is no such text.
std::string text_of(const web::json::value& object, const char* name) {
    return object.has_string_field(name) ? object.at(name).as_string() : "";
}

Result<TemporaryCredentials> parse(const std::string& text) {
    std::error_code broken;
    const auto json = web::json::value::parse(text, broken);
    if (broken || !json.is_object()) {
        return fail(ErrorCode::kForbidden, "is not a JSON object");
    }
    TemporaryCredentials found;
    found.credentials = {
        text_of(json, "AccessKeyId"),
        text_of(json, "SecretAccessKey"),
        text_of(json, "SessionToken")};
    if (found.credentials.access_key_id.empty() || found.credentials.secret_access_key.empty()) {
        return fail(ErrorCode::kForbidden, "has no AccessKeyId with a SecretAccessKey");
    }
    if (const std::string expires = text_of(json, "Expiration"); !expires.empty()) {
        found.expires = parse_iso_time(expires);
        if (!found.expires) {
            return fail(ErrorCode::kForbidden, "has an Expiration that is no time in UTC");
        }
    }
    return found;
}

class FileSource final : public CredentialSource {
public:
    FileSource(std::string path, const Clock& clock)
        : path_(std::move(path)),
          clock_(&clock) {}

    Result<std::optional<Credentials>> get() override {
        auto state = state_.lock();
        const TimePoint now = clock_->now();
        if (!state->looked_at || now >= *state->looked_at + kLookInterval) {
            state->looked_at = now;
            look(*state);
        }
        if (!state->read) {
            return fail(state->read.error());
        }
        const auto& expires = state->read->expires;
        if (expires && clock_->wall_now() >= *expires) {
            return fail(
                ErrorCode::kForbidden,
                fmt::format("credentials: {} has expired and was not renewed", path_));
        }
        return state->read->credentials;
    }

    [[nodiscard]] bool is_missing() const override { return ::access(path_.c_str(), F_OK) != 0; }

private:
    // Device, inode, size, time of the last change.
    using Version = std::tuple<dev_t, ino_t, off_t, std::time_t, long>;

    struct State {
        std::optional<TimePoint> looked_at;
        Version version{};
        Result<TemporaryCredentials> read = fail(ErrorCode::kForbidden, "");
    };

    void look(State& state) const {
        struct stat status {};

        Version version{};
        if (::stat(path_.c_str(), &status) == 0) {
            const auto& changed = status.st_mtim;
            version = {
                status.st_dev, status.st_ino, status.st_size, changed.tv_sec, changed.tv_nsec};
        }
        const bool is_fresh =
            state.read &&
            (!state.read->expires || clock_->wall_now() < *state.read->expires - kReadBefore);
        if (version == state.version && is_fresh) {
            return;
        }
        state.version = version;
        state.read = read_file();
    }

    [[nodiscard]] Result<TemporaryCredentials> read_file() const {
        const auto text = read_small_file(path_);
        if (!text) {
            return fail(text.error().prefixed("credentials"));
        }
        auto found = parse(*text);
        if (!found) {
            return fail(
                found.error().code,
                fmt::format("credentials: {} {}", path_, found.error().message));
        }
        return found;
    }

    const std::string path_;
    const Clock* clock_;
    Guarded<State> state_;
};

}  // namespace

std::unique_ptr<CredentialSource> credentials_from_file(std::string path, const Clock& clock) {
    return std::make_unique<FileSource>(std::move(path), clock);
}

}  // namespace stoker::sidecar
