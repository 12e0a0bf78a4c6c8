#include "bench/scale/operator_process.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/http/http_client.h"

namespace stoker::bench {

namespace {

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    STOKER_CHECK(file.good(), "writing a file for the operator");
}

std::string read_all(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// The settings of the Helm chart, but for the addresses.
std::string settings(const std::string& folder) {
    return fmt::format(
        "sidecar: {{image: 'stoker-sidecar:scale'}}\n"
        "control:\n"
        "  listen: '127.0.0.1:0'\n"
        "  address: 'localhost:9443'\n"
        "  certificateDirectory: '{}/tls'\n"
        "http: {{metrics: '127.0.0.1:0', probes: '127.0.0.1:0', debug: ''}}\n",
        folder);
}

double field_kib(const std::string& status, const std::string& name) {
    const std::size_t at = status.find(name);
    return at == std::string::npos ? 0 : std::stod(status.substr(at + name.size()));
}

Result<http::HttpResponse> get(std::uint16_t port, const char* path) {
    const SystemClock clock;
    const auto client = http::make_curl_client({}, clock);
    http::HttpRequest request;
    request.url = fmt::format("http://127.0.0.1:{}{}", port, path);
    request.total_timeout = std::chrono::seconds{20};
    return (*client)->call(std::move(request));
}

}  // namespace

OperatorProcess::OperatorProcess(
    const std::string& program,
    const std::string& api_server,
    const std::string& name,
    const testing::TestCertificates& certificates) {
    const std::string& folder = folder_.path();
    std::filesystem::create_directories(folder + "/tls");
    testing::write_certificates(certificates, folder + "/tls");
    write_file(folder + "/operator.yaml", settings(folder));
    const std::string config = "--config=" + folder + "/operator.yaml";
    const std::string server = "--api-server=" + api_server;
    const std::string pod = "POD_NAME=" + name;
    const std::string log_file = folder + "/log";
    std::vector<const char*> arguments{program.c_str(), config.c_str(), server.c_str(), nullptr};
    std::vector<const char*> environment{pod.c_str(), "POD_NAMESPACE=stoker-system", nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(
        &actions, STDERR_FILENO, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int failed = posix_spawn(
        &pid_,
        program.c_str(),
        &actions,
        nullptr,
        const_cast<char* const*>(arguments.data()),
        const_cast<char* const*>(environment.data()));
    posix_spawn_file_actions_destroy(&actions);
    STOKER_CHECK(failed == 0, "starting the operator");
}

ProcessUse OperatorProcess::use() const {
    const std::string stat = read_all(fmt::format("/proc/{}/stat", pid_));
    const std::string status = read_all(fmt::format("/proc/{}/status", pid_));
    ProcessUse use;
    if (stat.empty()) {
        return use;
    }
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string skipped;
    for (int i = 3; i < 14; ++i) {
        fields >> skipped;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    use.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    use.memory_mib = field_kib(status, "VmRSS:") / 1024;
    use.memory_peak_mib = field_kib(status, "VmHWM:") / 1024;
    return use;
}

std::uint16_t OperatorProcess::port(const std::string& message) const {
    std::ifstream log(folder_.path() + "/log");
    for (std::string line; std::getline(log, line);) {
        const std::size_t key = line.find("\"port\":");
        if (line.find(message) != std::string::npos && key != std::string::npos) {
            return static_cast<std::uint16_t>(std::stoul(line.substr(key + 7)));
        }
    }
    return 0;
}

bool OperatorProcess::is_ready() const {
    const std::uint16_t probes = port("serving probes");
    const auto answer = probes == 0 ? fail(ErrorCode::kUnavailable, "") : get(probes, "/readyz");
    return answer && answer->status == 200;
}

std::string OperatorProcess::metrics() const {
    const auto answer = get(port("serving metrics"), "/metrics");
    return answer ? answer->body : "";
}

void OperatorProcess::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

}  // namespace stoker::bench
