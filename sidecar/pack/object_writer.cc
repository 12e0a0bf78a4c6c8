#include "sidecar/pack/object_writer.h"

#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "common/base/posix_error.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/origin/s3_answer.h"
#include "sidecar/origin/s3_request.h"

namespace stoker::sidecar {

namespace {

constexpr std::string_view kFile = "file://";

class DirectoryWriter final : public ObjectWriter {
public:
    explicit DirectoryWriter(std::string folder)
        : folder_(std::move(folder)),
          device_(make_posix_device()) {}

    Status put(const std::string& key, std::span<const std::byte> bytes) override {
        return replace_file(*device_, join_path(folder_, key), bytes, Durability::kPower);
    }

private:
    const std::string folder_;
    const std::unique_ptr<Device> device_;
};

class S3Writer final : public ObjectWriter {
public:
    S3Writer(
        S3Access s3,
        std::unique_ptr<http::HttpClient> client,
        const Clock& clock,
        std::uint64_t seed)
        : clock_(clock),
          random_(seed),
          client_(std::move(client)),
          s3_(std::move(s3)) {}

    Status put(const std::string& key, std::span<const std::byte> bytes) override {
        for (std::uint32_t attempt = 1;; ++attempt) {
            const auto failure = try_put(key, bytes);
            if (!failure) {
                return {};
            }
            const auto delay = delay_after({attempt, failure->may_pass, failure->retry_after});
            if (!delay) {
                const std::string tries =
                    attempt > 1 ? fmt::format(" (after {} attempts)", attempt) : "";
                return fail(
                    failure->error.code,
                    fmt::format(
                        "writing '{}' of {}: {}{}",
                        key,
                        s3_.location.describe(),
                        failure->error.message,
                        tries));
            }
            std::this_thread::sleep_for(*delay);
        }
    }

private:
    std::optional<Duration> delay_after(const FailedAttempt& attempt) {
        const std::lock_guard lock{mutex_};
        return next_delay(s3_.options.retry, attempt, random_);
    }

    // Tries to store the object once. nullopt: stored.
    std::optional<OriginFailure> try_put(const std::string& key, std::span<const std::byte> bytes) {
        auto credentials = s3_.credentials->get();
        if (!credentials) {
            return failure_of_transport(credentials.error());
        }
        const WallTime now = clock_.wall_now();
        http::HttpRequest request = put_request(
            s3_.location,
            key,
            {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
            *credentials,
            now);
        request.connect_timeout = s3_.options.connect_timeout;
        // The server is silent while it receives, so the time limit is for the whole call.
        constexpr std::uint64_t kSlowestBytesPerSecond = 64 * 1024;
        request.total_timeout = std::chrono::seconds{60 + bytes.size() / kSlowestBytesPerSecond};
        const auto response = client_->call(std::move(request));
        if (!response) {
            return failure_of_transport(response.error());
        }
        if (response->status != 200) {
            return failure_of_status(response->status, response->headers, response->body, now);
        }
        return std::nullopt;
    }

    const Clock& clock_;
    std::mutex mutex_;
    Prng random_;  // guarded by mutex_
    const std::unique_ptr<http::HttpClient> client_;
    const S3Access s3_;
};

Result<std::unique_ptr<ObjectWriter>> make_directory_writer(std::string path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) {
        return fail(posix_error(failed.value(), "creating", path));
    }
    return std::unique_ptr<ObjectWriter>{std::make_unique<DirectoryWriter>(std::move(path))};
}

}  // namespace

Result<std::unique_ptr<ObjectWriter>> make_object_writer(
    std::string_view uri,
    const OriginOptions& options,
    const Environment& environment,
    const Clock& clock,
    std::uint64_t seed) {
    if (uri.starts_with("file:///")) {
        return make_directory_writer(std::string{uri.substr(kFile.size())});
    }
    STOKER_TRY(S3Access s3, resolve_s3(uri, options, environment, clock));
    STOKER_TRY(
        auto client,
        http::make_curl_client(client_options(s3.options, s3.location.scheme + ":"), clock));
    return std::unique_ptr<ObjectWriter>{
        std::make_unique<S3Writer>(std::move(s3), std::move(client), clock, seed)};
}

}  // namespace stoker::sidecar
