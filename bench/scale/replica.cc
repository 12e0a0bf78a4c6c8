#include "bench/scale/replica.h"

#include <chrono>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "common/http/http_client.h"

namespace stoker::bench {

namespace {

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

Replica::Replica(
    const std::string& program,
    const std::string& api_server,
    const std::string& name,
    const testing::TestCertificates& certificates)
    : process_({program, api_server, name, {}, settings}, certificates) {}

ProcessUse Replica::use() const {
    const std::string stat = read_all(fmt::format("/proc/{}/stat", process_.pid()));
    const std::string status = read_all(fmt::format("/proc/{}/status", process_.pid()));
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

bool Replica::is_ready() const {
    const std::uint16_t probes = port("serving probes");
    const auto answer = probes == 0 ? fail(ErrorCode::kUnavailable, "") : get(probes, "/readyz");
    return answer && answer->status == 200;
}

std::string Replica::metrics() const {
    const auto answer = get(port("serving metrics"), "/metrics");
    return answer ? answer->body : "";
}

}  // namespace stoker::bench
