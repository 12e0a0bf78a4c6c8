#include "sidecar/origin/credentials.h"

#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/guarded.h"
#include "sidecar/origin/small_file.h"

namespace stoker::sidecar {

namespace {

constexpr const char* kIdName = "AWS_ACCESS_KEY_ID";
constexpr const char* kSecretName = "AWS_SECRET_ACCESS_KEY";
constexpr const char* kTokenName = "AWS_SESSION_TOKEN";
constexpr Duration kRecheckInterval = std::chrono::seconds{1};

using Answer = Result<std::optional<Credentials>>;

class FixedSource final : public CredentialSource {
public:
    explicit FixedSource(std::optional<Credentials> credentials)
        : credentials_(std::move(credentials)) {}

    Answer get() override { return credentials_; }

private:
    const std::optional<Credentials> credentials_;
};

class DirectorySource final : public CredentialSource {
public:
    DirectorySource(std::string directory, const Clock& clock)
        : directory_(std::move(directory)),
          clock_(&clock) {}

    Answer get() override {
        auto cache = cache_.lock();
        const TimePoint now = clock_->now();
        if (!cache->answer || now >= cache->read_at + kRecheckInterval) {
            cache->answer = read();
            cache->read_at = now;
        }
        return *cache->answer;
    }

    [[nodiscard]] bool is_missing() const override {
        return ::access(fmt::format("{}/{}", directory_, kIdName).c_str(), F_OK) != 0;
    }

private:
    struct Cache {
        std::optional<Answer> answer;
        TimePoint read_at;
    };

    [[nodiscard]] Answer read() const {
        Credentials credentials;
        for (const auto& [name, value] :
             {std::pair{kIdName, &credentials.access_key_id},
              std::pair{kSecretName, &credentials.secret_access_key}}) {
            auto text = read_small_file(fmt::format("{}/{}", directory_, name));
            if (!text) {
                return fail(text.error().prefixed("credentials"));
            }
            *value = *std::move(text);
        }
        credentials.session_token =
            read_small_file(fmt::format("{}/{}", directory_, kTokenName)).value_or("");
        return credentials;
    }

    const std::string directory_;
    const Clock* clock_;
    Guarded<Cache> cache_;
};

}  // namespace

Result<std::unique_ptr<CredentialSource>> credentials_from_environment(
    const Environment& environment) {
    const auto value = [&](const char* name) -> std::string {
        const char* text = environment(name);
        return text == nullptr ? "" : text;
    };
    Credentials credentials{value(kIdName), value(kSecretName), value(kTokenName)};
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

std::unique_ptr<CredentialSource> credentials_from_directory(
    std::string directory, const Clock& clock) {
    return std::make_unique<DirectorySource>(std::move(directory), clock);
}

std::unique_ptr<CredentialSource> no_credentials() {
    return std::make_unique<FixedSource>(std::nullopt);
}

}  // namespace stoker::sidecar
