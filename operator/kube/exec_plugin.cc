#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <cpprest/json.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/unique_fd.h"
#include "common/log/log.h"
#include "operator/api/time_format.h"
#include "operator/kube/access.h"
#include "operator/kube/json.h"

extern char** environ;

namespace stoker::control {

namespace {

constexpr Duration kTimeLimit = std::chrono::seconds{30};
constexpr std::size_t kOutputBytesMax = std::size_t{1} << 20U;

struct Pipe {
    UniqueFd read;
    UniqueFd write;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail(ErrorCode::kResourceExhausted, std::string("pipe: ") + std::strerror(errno));
    }
    return Pipe{UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

// What the plugin reads in KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecConfig& exec, const AccessConfig& config) {
    auto info = web::json::value::object();
    info["kind"] = web::json::value("ExecCredential");
    info["apiVersion"] = web::json::value(exec.api_version);
    info["spec"]["interactive"] = web::json::value::boolean(false);
    if (exec.provide_cluster_info) {
        auto& cluster = info["spec"]["cluster"];
        cluster["server"] = web::json::value(config.server);
        if (!config.ca_pem.empty()) {
            cluster["certificate-authority-data"] = web::json::value(base64_encode(config.ca_pem));
        }
        if (config.insecure) {
            cluster["insecure-skip-tls-verify"] = web::json::value::boolean(true);
        }
    }
    return info.serialize();
}

// A vector of C strings that ends with a null pointer, as execve wants it.
class CStrings {
public:
    void add(std::string text) { texts_.push_back(std::move(text)); }

    char** get() {
        pointers_.clear();
        for (std::string& text : texts_) {
            pointers_.push_back(text.data());
        }
        pointers_.push_back(nullptr);
        return pointers_.data();
    }

private:
    std::vector<std::string> texts_;
    std::vector<char*> pointers_;
};

CStrings environment(const ExecConfig& exec, const AccessConfig& config) {
    CStrings env;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (exec.env.count(text.substr(0, text.find('='))) == 0) {
            env.add(text);
        }
    }
    for (const auto& [name, value] : exec.env) {
        env.add(name + "=" + value);
    }
    env.add("KUBERNETES_EXEC_INFO=" + exec_info(exec, config));
    return env;
}

Result<pid_t> spawn(const ExecConfig& exec, const AccessConfig& config, int out, int err) {
    const bool relative = exec.command.find('/') != std::string::npos &&
                          exec.command.front() != '/' && !exec.directory.empty();
    const std::string command = relative ? exec.directory + "/" + exec.command : exec.command;
    CStrings arguments;
    arguments.add(command);
    for (const std::string& argument : exec.args) {
        arguments.add(argument);
    }
    CStrings env = environment(exec, config);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    // A process group of its own, so that the time limit ends its children too; and no blocked
    // signals of ours.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    pid_t pid = 0;
    const int error =
        ::posix_spawnp(&pid, command.c_str(), &actions, &attributes, arguments.get(), env.get());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("cannot run exec plugin {}: {}", command, std::strerror(error)));
    }
    return pid;
}

// Reads until both ends are closed; false when it took too long or said too much.
bool drain(int out, int err, std::string& output, std::string& complaints) {
    const SystemClock clock;
    const TimePoint until = clock.now() + kTimeLimit;
    std::array<pollfd, 2> ends{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
    std::array<std::string*, 2> texts{&output, &complaints};
    std::array<char, 4096> chunk{};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
        if (left <= 0 || ::poll(ends.data(), ends.size(), static_cast<int>(left)) == 0) {
            return false;
        }
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (ends.at(i).fd < 0 || ends.at(i).revents == 0) {
                continue;
            }
            const auto count = ::read(ends.at(i).fd, chunk.data(), chunk.size());
            if (count <= 0) {
                ends.at(i).fd = -1;
            } else if (texts.at(i)->size() < kOutputBytesMax) {
                texts.at(i)->append(chunk.data(), static_cast<std::size_t>(count));
            } else {
                return false;
            }
        }
    }
    return true;
}

Result<ExecCredential> read_credential(const ExecConfig& exec, const std::string& output) {
    const auto parsed = Json::parse(output);
    if (!parsed || string_at(parsed->value(), {"kind"}) != "ExecCredential" ||
        string_at(parsed->value(), {"apiVersion"}) != exec.api_version) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "exec plugin {} printed no ExecCredential {}", exec.command, exec.api_version));
    }
    const auto& value = parsed->value();
    ExecCredential credential;
    credential.token = string_at(value, {"status", "token"});
    credential.cert_pem = string_at(value, {"status", "clientCertificateData"});
    credential.key_pem = string_at(value, {"status", "clientKeyData"});
    if (const auto text = string_at(value, {"status", "expirationTimestamp"}); !text.empty()) {
        STOKER_TRY(credential.expires, parse_time(text));
    }
    if (credential.token.empty() && credential.cert_pem.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("exec plugin {} gave neither token nor certificate", exec.command));
    }
    return credential;
}

}  // namespace

Result<ExecCredential> run_exec_plugin(const ExecConfig& exec, const AccessConfig& config) {
    if (exec.interactive_mode == "Always") {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("exec plugin {} wants a terminal, and there is none", exec.command));
    }
    STOKER_TRY(Pipe out, make_pipe());
    STOKER_TRY(Pipe err, make_pipe());
    STOKER_TRY(const pid_t pid, spawn(exec, config, out.write.get(), err.write.get()));
    out.write.reset();
    err.write.reset();
    std::string output;
    std::string complaints;
    const bool in_time = drain(out.read.get(), err.read.get(), output, complaints);
    if (!in_time) {
        ::kill(-pid, SIGKILL);
    }
    int result = 0;
    while (::waitpid(pid, &result, 0) < 0 && errno == EINTR) {
    }
    if (!complaints.empty()) {
        log::warning("exec plugin said", {{"command", exec.command}, {"stderr", complaints}});
    }
    if (!in_time || !WIFEXITED(result) || WEXITSTATUS(result) != 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("exec plugin {} {}", exec.command, in_time ? "failed" : "took too long"));
    }
    return read_credential(exec, output);
}

}  // namespace stoker::control
