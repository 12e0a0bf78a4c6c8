#include "tests/support/running_operator.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "common/base/check.h"
#include "common/http/http_client.h"
#include "tests/support/poll.h"

namespace stoker::test {

namespace {

std::string config_text(const RunningOperator::Options& options, const std::string& folder) {
    const std::string certificates = options.own_ca
                                         ? std::string{"address: 'localhost:9443'"}
                                         : fmt::format(
                                               "address: 'stoker-control.stoker-system.svc:9443'\n"
                                               "  certificateDirectory: '{}/tls'",
                                               folder);
    return fmt::format(
        "sidecar: {{image: 'stoker-sidecar:test'}}\n"
        "control:\n"
        "  listen: '127.0.0.1:0'\n"
        "  {}\n"
        "  grantSeconds: {}\n"
        "watchNamespaces: [{}]\n"
        "http: {{metrics: '{}', probes: '127.0.0.1:0', debug: '127.0.0.1:0'}}\n"
        "leaderElection: {{enabled: {}, leaseDuration: {}s, renewDeadline: {}ms, retryPeriod: "
        "200ms}}\n",
        certificates,
        options.grant_seconds,
        options.watch_namespaces,
        options.metrics ? "127.0.0.1:0" : "",
        options.leader_election,
        options.lease_seconds,
        options.lease_seconds * 750);
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    STOKER_CHECK(file.good(), "writing a file for the operator");
}

Result<http::HttpResponse> call(const std::string& url, http::Headers headers = {}) {
    const SystemClock clock;
    http::ClientOptions options;
    options.verify = false;
    const auto client = http::make_curl_client(std::move(options), clock);
    http::HttpRequest request;
    request.url = url;
    request.headers = std::move(headers);
    return (*client)->call(std::move(request));
}

}  // namespace

RunningOperator::RunningOperator(const Options& options)
    : certificates_(testing::make_certificates()) {
    write_files(options);
    start(options);
}

RunningOperator::~RunningOperator() {
    if (pid_ > 0) {
        signal(SIGKILL);
        wait_exit();
    }
}

void RunningOperator::write_files(const Options& options) {
    const std::string& folder = folder_.path();
    std::filesystem::create_directories(folder + "/tls");
    testing::write_certificates(certificates_, folder + "/tls");
    write_file(folder + "/operator.yaml", config_text(options, folder));
}

void RunningOperator::start(const Options& options) {
    const std::string& folder = folder_.path();
    const std::string config = "--config=" + folder + "/operator.yaml";
    const std::string api_server = "--api-server=" + options.api_server;
    const std::string log_file = folder + "/log";
    const std::string pod = "POD_NAME=" + options.pod_name;
    const std::vector<const char*> arguments{
        STOKER_OPERATOR_PROGRAM, config.c_str(), api_server.c_str(), "--log-level=debug", nullptr};
    const std::vector<const char*> environment{pod.c_str(), "POD_NAMESPACE=stoker-system", nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(
        &actions, STDERR_FILENO, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int failed = posix_spawn(
        &pid_,
        STOKER_OPERATOR_PROGRAM,
        &actions,
        nullptr,
        const_cast<char* const*>(arguments.data()),
        const_cast<char* const*>(environment.data()));
    posix_spawn_file_actions_destroy(&actions);
    STOKER_CHECK(failed == 0, "starting stoker-operator");
}

std::string RunningOperator::log() const {
    std::ifstream file(folder_.path() + "/log");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::uint16_t RunningOperator::logged_port(const std::string& message) const {
    std::istringstream lines(log());
    for (std::string line; std::getline(lines, line);) {
        const std::size_t key = line.find("\"port\":");
        if (line.find(message) != std::string::npos && key != std::string::npos) {
            return static_cast<std::uint16_t>(std::stoul(line.substr(key + 7)));
        }
    }
    return 0;
}

std::uint16_t RunningOperator::wait_port(const std::string& message) const {
    eventually([&] { return logged_port(message) != 0; });
    return logged_port(message);
}

Result<http::HttpResponse> RunningOperator::get(const std::string& path) {
    const bool probe = path == "/healthz" || path == "/readyz";
    const std::uint16_t port = wait_port(probe ? "serving probes" : "serving metrics");
    return call(fmt::format("http://127.0.0.1:{}{}", port, path));
}

Result<http::HttpResponse> RunningOperator::debug_get(
    const std::string& path, http::Headers headers) {
    const std::uint16_t port = wait_port("serving debug pages");
    return call(fmt::format("https://127.0.0.1:{}{}", port, path), std::move(headers));
}

bool RunningOperator::wait_ready() {
    return eventually([this] { return http_status("/readyz") == 200; });
}

std::string RunningOperator::wait_control_address() {
    eventually([this] { return logged_port("serving sidecars") != 0; });
    return fmt::format("localhost:{}", logged_port("serving sidecars"));
}

int RunningOperator::http_status(const std::string& path) {
    const auto response = get(path);
    return response ? response->status : 0;
}

std::string RunningOperator::http_body(const std::string& path) {
    const auto response = get(path);
    return response ? response->body : "";
}

void RunningOperator::signal(int number) const {
    if (pid_ > 0) {
        ::kill(pid_, number);
    }
}

std::optional<int> RunningOperator::wait_exit() {
    int status = 0;
    const bool ended = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    if (!ended) {
        return std::nullopt;
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::optional<int> RunningOperator::terminate() {
    signal(SIGTERM);
    return wait_exit();
}

}  // namespace stoker::test
