#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"

// Where the API server is and how we prove who we are; read anew while we run, because tokens and
// certificates rotate.
namespace stoker::control {

// A program that prints credentials (client.authentication.k8s.io).
struct ExecConfig {
    std::string api_version;
    std::string command;
    std::vector<std::string> args;
    std::map<std::string, std::string> env;
    std::string interactive_mode;  // "Never", "IfAvailable", "Always" (refused)
    bool provide_cluster_info = false;
    std::string directory;  // of the kubeconfig: a relative command with a slash starts there
};

// As written down, paths absolute. Of a text and a file for the same thing the text wins;
// token_file beats token.
struct AccessConfig {
    std::string server;  // "https://10.96.0.1:443"
    std::string ca_pem;
    std::string ca_file;
    bool insecure = false;
    std::string token;
    std::string token_file;
    std::string cert_pem;
    std::string cert_file;
    std::string key_pem;
    std::string key_file;
    std::string username;
    std::string password;
    std::string impersonate_user;
    std::vector<std::string> impersonate_groups;
    std::optional<ExecConfig> exec;
    std::string ns = "default";  // of the context, or of our own pod
};

// What an exec plugin gave.
struct ExecCredential {
    std::string token;
    std::string cert_pem;
    std::string key_pem;
    std::optional<WallTime> expires;
};

// What one request needs now.
struct Access {
    std::string server;
    std::string ca_pem;  // "" = the system's
    bool insecure = false;
    std::string cert_pem;
    std::string key_pem;
    std::string authorization;  // the header's value, "" = none
    std::string impersonate_user;
    std::vector<std::string> impersonate_groups;
};

// Gives the access of the moment and keeps what it read:
//   token file   for 60 s; an unreadable or empty file keeps the old token; a 401 has it read at
//   once CA, client certificate and key files   for 5 min; unreadable or empty keeps the old ones
//   exec plugin  until 10 s before its expiry, or a 401; one run at a time
// Thread-safe; may block on files and, rarely, on the plugin.
class AccessSource {
public:
    // The doors: tests put liars behind them.
    struct Doors {
        std::function<Result<std::string>(const std::string& path)> read_file;
        std::function<Result<ExecCredential>(const ExecConfig& exec, const AccessConfig& config)>
            run_exec;
    };

    AccessSource(AccessConfig config, Doors doors, const Clock& clock);

    // Errors: what the files or the plugin said, if nothing older can stand in.
    Result<Access> get();

    // The server answered 401 to this authorization. Returns true when get() may now give another.
    bool reject(const std::string& authorization);

    [[nodiscard]] const AccessConfig& config() const { return config_; }

private:
    struct CachedFile {
        std::string text;
        TimePoint read_at{};
        bool known = false;
    };

    struct State {
        std::map<std::string, CachedFile> files;
        std::optional<ExecCredential> exec;
    };

    Result<std::string> text_of(
        State& state, const std::string& text, const std::string& path, Duration keep);
    Result<ExecCredential> exec_credential(State& state);
    Result<std::string> authorization(State& state, const std::string& exec_token);

    AccessConfig config_;
    Doors doors_;
    const Clock* clock_;
    Guarded<State> state_;
};

// The machine's files and processes.
AccessSource::Doors system_doors();

// For plugins: runs it with a time limit, without a terminal; its stderr goes to the log.
// Errors: kUnavailable (cannot start, failed, took too long), kInvalidArgument (asks for a
// terminal, prints no credential).
Result<ExecCredential> run_exec_plugin(const ExecConfig& exec, const AccessConfig& config);

// The credentials that the kubelet mounts into a pod. `env` reads the environment.
// Errors: kNotFound when this is no pod (no KUBERNETES_SERVICE_HOST).
Result<AccessConfig> in_cluster_access(
    const std::function<std::string(const char*)>& env,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

std::string base64_encode(const std::string& bytes);
Result<std::string> base64_decode(const std::string& text);

}  // namespace stoker::control
