#include "operator/kube/access.h"

#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr Duration kTokenKept = std::chrono::seconds{60};
constexpr Duration kCaKept = std::chrono::minutes{5};

std::string trimmed(std::string text) {
    const auto end = text.find_last_not_of(" \t\r\n");
    text.erase(end == std::string::npos ? 0 : end + 1);
    return text;
}

}  // namespace

AccessSource::AccessSource(AccessConfig config, ReadFile read_file, const Clock& clock)
    : config_(std::move(config)),
      read_file_(std::move(read_file)),
      clock_(&clock) {}

Result<Access> AccessSource::get() {
    auto files = files_.lock();
    Access access{config_.server, config_.unix_socket, {}, {}};
    STOKER_TRY(access.ca_pem, text_of(*files, config_.ca_file, kCaKept));
    STOKER_TRY(const std::string token, text_of(*files, config_.token_file, kTokenKept));
    access.authorization = token.empty() ? token : "Bearer " + trimmed(token);
    return access;
}

Result<std::string> AccessSource::text_of(Files& files, const std::string& path, Duration keep) {
    if (path.empty()) {
        return path;
    }
    CachedFile& cached = files[path];
    const TimePoint now = clock_->now();
    if (cached.known && now - cached.read_at < keep) {
        return cached.text;
    }
    auto read = read_file_(path);
    if (read && !trimmed(*read).empty()) {
        cached.text = *std::move(read);
    } else if (cached.text.empty()) {
        return fail(
            read ? Error{ErrorCode::kInvalidArgument, path + " is empty"}
                 : std::move(read).error());
    } else {
        log::warning(
            "a credential file cannot be read; keeping its previous content", {{"path", path}});
    }
    cached.known = true;
    cached.read_at = now;
    return cached.text;
}

bool AccessSource::reject(const std::string& authorization) {
    {
        auto files = files_.lock();
        if (const auto file = files->find(config_.token_file); file != files->end()) {
            file->second.known = false;
        }
    }
    const auto now = get();
    return now && now->authorization != authorization;
}

Result<AccessConfig> in_cluster_access(
    const std::function<std::string(const char*)>& env, const std::string& mount) {
    const std::string host = env("KUBERNETES_SERVICE_HOST");
    const std::string port = env("KUBERNETES_SERVICE_PORT");
    if (host.empty() || port.empty()) {
        return fail(
            ErrorCode::kNotFound,
            "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    }
    AccessConfig config;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    config.server = is_ipv6 ? fmt::format("https://[{}]:{}", host, port)
                            : fmt::format("https://{}:{}", host, port);
    config.token_file = mount + "/token";
    config.ca_file = mount + "/ca.crt";
    return config;
}

}  // namespace stoker::control
