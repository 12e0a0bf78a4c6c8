#include "operator/kube/access.h"

#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr Duration kTokenKept = std::chrono::seconds{60};
constexpr Duration kCertificatesKept = std::chrono::minutes{5};
constexpr Duration kExpiryLeeway = std::chrono::seconds{10};

std::string trimmed(std::string text) {
    const auto end = text.find_last_not_of(" \t\r\n");
    text.erase(end == std::string::npos ? 0 : end + 1);
    return text;
}

Result<std::string> read_whole_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();  // of an empty file this sets failbit, which is fine
    if (!file.is_open() || file.bad()) {
        return fail(ErrorCode::kNotFound, "cannot read " + path);
    }
    return std::move(text).str();
}

}  // namespace

AccessSource::Doors system_doors() {
    return {read_whole_file, run_exec_plugin};
}

AccessSource::AccessSource(AccessConfig config, Doors doors, const Clock& clock)
    : config_(std::move(config)),
      doors_(std::move(doors)),
      clock_(&clock) {}

Result<Access> AccessSource::get() {
    auto state = state_.lock();
    Access access;
    access.server = config_.server;
    access.insecure = config_.insecure;
    access.impersonate_user = config_.impersonate_user;
    access.impersonate_groups = config_.impersonate_groups;
    STOKER_TRY(access.ca_pem, text_of(*state, config_.ca_pem, config_.ca_file, kCertificatesKept));
    STOKER_TRY(
        access.cert_pem, text_of(*state, config_.cert_pem, config_.cert_file, kCertificatesKept));
    STOKER_TRY(
        access.key_pem, text_of(*state, config_.key_pem, config_.key_file, kCertificatesKept));
    ExecCredential from_exec;
    const bool has_static = !config_.token.empty() || !config_.token_file.empty() ||
                            !access.cert_pem.empty() || !config_.username.empty();
    if (config_.exec && !has_static) {
        STOKER_TRY(from_exec, exec_credential(*state));
        access.cert_pem = from_exec.cert_pem;
        access.key_pem = from_exec.key_pem;
    }
    STOKER_TRY(access.authorization, authorization(*state, from_exec.token));
    return access;
}

Result<std::string> AccessSource::authorization(State& state, const std::string& exec_token) {
    if (!config_.username.empty()) {
        return "Basic " + base64_encode(config_.username + ":" + config_.password);
    }
    // The file beats the text, which is only what the file once held.
    const std::string& text = config_.token_file.empty() ? config_.token : std::string();
    STOKER_TRY(std::string token, text_of(state, text, config_.token_file, kTokenKept));
    token = trimmed(exec_token.empty() ? std::move(token) : exec_token);
    return token.empty() ? token : "Bearer " + token;
}

Result<std::string> AccessSource::text_of(
    State& state, const std::string& text, const std::string& path, Duration keep) {
    if (!text.empty() || path.empty()) {
        return text;
    }
    CachedFile& cached = state.files[path];
    const TimePoint now = clock_->now();
    if (cached.known && now - cached.read_at < keep) {
        return cached.text;
    }
    auto read = doors_.read_file(path);
    if (read && !trimmed(*read).empty()) {
        cached.text = *std::move(read);
    } else if (cached.text.empty()) {
        return fail(
            read ? Error{ErrorCode::kInvalidArgument, path + " is empty"}
                 : std::move(read).error());
    } else {
        log::warning("keeping what a credential file held before", {{"path", path}});
    }
    cached.known = true;
    cached.read_at = now;
    return cached.text;
}

Result<ExecCredential> AccessSource::exec_credential(State& state) {
    const bool fresh = state.exec && (!state.exec->expires ||
                                      clock_->wall_now() + kExpiryLeeway < *state.exec->expires);
    if (!fresh) {
        STOKER_TRY(state.exec, doors_.run_exec(*config_.exec, config_));
    }
    return *state.exec;
}

bool AccessSource::reject(const std::string& authorization) {
    {
        auto state = state_.lock();
        if (const auto file = state->files.find(config_.token_file); file != state->files.end()) {
            file->second.known = false;
        }
        // Unless another request had it renewed meanwhile.
        if (state->exec && "Bearer " + trimmed(state->exec->token) == authorization) {
            state->exec.reset();
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
    if (const auto ns = read_whole_file(mount + "/namespace"); ns && !trimmed(*ns).empty()) {
        config.ns = trimmed(*ns);
    }
    return config;
}

}  // namespace stoker::control
