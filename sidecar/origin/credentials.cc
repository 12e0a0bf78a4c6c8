#include "sidecar/origin/credentials.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/guarded.h"
#include "common/base/read_file.h"

namespace stoker::sidecar {

namespace {

constexpr const char* kIdName = "AWS_ACCESS_KEY_ID";
constexpr const char* kSecretName = "AWS_SECRET_ACCESS_KEY";
constexpr const char* kTokenName = "AWS_SESSION_TOKEN";
constexpr std::uintmax_t kFileBytesMax = 64 * 1024;
constexpr Duration kRecheckInterval = std::chrono::seconds{1};

class FixedSource final : public CredentialSource {
public:
    explicit FixedSource(std::optional<Credentials> credentials)
        : credentials_(std::move(credentials)) {}

    std::optional<Answer> try_get(std::function<void()> /*ready*/) override {
        return Answer{credentials_};
    }

private:
    const std::optional<Credentials> credentials_;
};

class FilesSource final : public CredentialSource {
public:
    using Read = std::function<Result<TemporaryCredentials>()>;

    FilesSource(std::vector<std::string> paths, Read read, const Clock& clock)
        : paths_(std::move(paths)),
          read_(std::move(read)),
          clock_(&clock) {}

    std::optional<Answer> try_get(std::function<void()> /*ready*/) override {
        auto cache = cache_.lock();
        const TimePoint now = clock_->now();
        if (!cache->found || now >= cache->read_at + kRecheckInterval) {
            cache->found = read_();
            cache->read_at = now;
        }
        const auto& found = *cache->found;
        if (!found) {
            return Answer{fail(found.error().prefixed("credentials"))};
        }
        if (found->expires && clock_->wall_now() >= *found->expires) {
            return Answer{fail(
                ErrorCode::kForbidden,
                fmt::format("credentials: {} has expired and was not renewed", paths_.front()))};
        }
        return Answer{found->credentials};
    }

    [[nodiscard]] bool is_missing() const override {
        return std::ranges::all_of(
            paths_, [](const std::string& path) { return ::access(path.c_str(), F_OK) != 0; });
    }

private:
    struct Cache {
        std::optional<Result<TemporaryCredentials>> found;
        TimePoint read_at;
    };

    const std::vector<std::string> paths_;
    const Read read_;
    const Clock* clock_;
    Guarded<Cache> cache_;
};

Result<TemporaryCredentials> read_directory(const std::string& directory) {
    const auto file = [&directory](const char* name) {
        return read_small_file(fmt::format("{}/{}", directory, name));
    };
    Credentials credentials;
    STOKER_TRY(credentials.access_key_id, file(kIdName));
    STOKER_TRY(credentials.secret_access_key, file(kSecretName));
    credentials.session_token = file(kTokenName).value_or("");
    return TemporaryCredentials{std::move(credentials)};
}

}  // namespace

CredentialSource::Answer CredentialSource::get() {
    while (true) {
        // Shared, because set_value() may still run after wait() has returned.
        const auto ready = std::make_shared<std::promise<void>>();
        if (auto answer = try_get([ready] { ready->set_value(); })) {
            return *std::move(answer);
        }
        ready->get_future().wait();
    }
}

std::string variable(const Environment& environment, const char* name) {
    const char* text = environment(name);
    return text == nullptr ? "" : text;
}

Result<std::string> read_small_file(const std::string& path) {
    const auto refuse = [&path](const std::string& why) {
        return fail(ErrorCode::kForbidden, fmt::format("{} {}", path, why));
    };
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error && ::access(path.c_str(), R_OK) != 0) {
        error = {errno, std::generic_category()};
    }
    if (error) {
        return refuse(fmt::format("cannot be read: {}", error.message()));
    }
    if (size > kFileBytesMax) {
        return refuse("is larger than 64 KiB");
    }
    const auto text = read_filled_file(path);
    return text ? text : refuse("is empty");
}

Result<std::unique_ptr<CredentialSource>> credentials_from_environment(
    const Environment& environment) {
    Credentials credentials{
        variable(environment, kIdName),
        variable(environment, kSecretName),
        variable(environment, kTokenName)};
    const bool has_id = !credentials.access_key_id.empty();
    const bool has_secret = !credentials.secret_access_key.empty();
    if (has_id != has_secret) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "credentials: {} is set without {}",
                has_id ? kIdName : kSecretName,
                has_id ? kSecretName : kIdName));
    }
    if (!has_id) {
        return std::unique_ptr<CredentialSource>{};
    }
    return std::unique_ptr<CredentialSource>{std::make_unique<FixedSource>(std::move(credentials))};
}

std::unique_ptr<CredentialSource> credentials_from_files(
    std::vector<std::string> paths,
    std::function<Result<TemporaryCredentials>()> read,
    const Clock& clock) {
    return std::make_unique<FilesSource>(std::move(paths), std::move(read), clock);
}

std::unique_ptr<CredentialSource> credentials_from_directory(
    const std::string& directory, const Clock& clock) {
    return credentials_from_files(
        {fmt::format("{}/{}", directory, kIdName)},
        [directory] { return read_directory(directory); },
        clock);
}

std::unique_ptr<CredentialSource> no_credentials() {
    return std::make_unique<FixedSource>(std::nullopt);
}

}  // namespace stoker::sidecar
