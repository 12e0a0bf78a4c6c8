#include "tests/support/running_operator.h"

#include <memory>

#include <fmt/format.h>
#include <signal.h>

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
    : certificates_(testing::make_certificates()),
      process_(
          {STOKER_OPERATOR_PROGRAM,
           options.api_server,
           options.pod_name,
           {"--log-level=debug"},
           [&options](const std::string& folder) { return config_text(options, folder); }},
          certificates_) {}

std::uint16_t RunningOperator::wait_port(const std::string& message) const {
    eventually([&] { return process_.logged_port(message) != 0; });
    return process_.logged_port(message);
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
    return fmt::format("localhost:{}", wait_port("serving sidecars"));
}

int RunningOperator::http_status(const std::string& path) {
    const auto response = get(path);
    return response ? response->status : 0;
}

std::string RunningOperator::http_body(const std::string& path) {
    const auto response = get(path);
    return response ? response->body : "";
}

std::optional<int> RunningOperator::wait_exit() {
    std::optional<int> code;
    eventually([&] {
        code = process_.take_exit();
        return code.has_value();
    });
    return code;
}

std::optional<int> RunningOperator::terminate() {
    signal(SIGTERM);
    return wait_exit();
}

}  // namespace stoker::test
