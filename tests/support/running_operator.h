#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "tests/support/certificates.h"
#include "tests/support/operator_process.h"

namespace stoker::test {

// The real stoker-operator as a process outside a cluster, with automatic ports and short lease
// times. The destructor kills it with SIGKILL. Not thread-safe.
class RunningOperator {
public:
    struct Options {
        std::string api_server;  // URL
        std::string pod_name = "operator-0";
        std::uint32_t grant_seconds = 10;
        bool leader_election = true;
        std::uint32_t lease_seconds = 2;  // renews every 200 ms, gives up at three quarters
        // True: the operator makes its own certificates, for the host "localhost". False: it gets
        // the certificates of ca().
        bool own_ca = false;
        bool metrics = true;
        std::string watch_namespaces{};  // "a, b"; empty: all
    };

    explicit RunningOperator(const Options& options);

    // Waits until the operator's caches are filled. False: not within half a minute.
    bool wait_ready();

    // Waits until the operator leads and serves sidecars; returns "localhost:port".
    std::string wait_control_address();

    // GET on its metrics port, or on its probe port for probe paths; 0: no
    // answer.
    int http_status(const std::string& path);
    std::string http_body(const std::string& path);

    // GET on its HTTPS debug port; accepts any certificate.
    Result<http::HttpResponse> debug_get(const std::string& path, http::Headers headers = {});

    // Whether it listens for metrics.
    [[nodiscard]] bool serves_metrics() const {
        return process_.logged_port("serving metrics") != 0;
    }

    // The operator's log so far, one JSON object per line.
    [[nodiscard]] std::string log() const { return process_.log(); }

    void signal(int number) const { process_.signal(number); }

    // Waits for the process's end; returns the exit code, or 128 + the signal. nullopt: it still
    // runs after half a minute.
    std::optional<int> wait_exit();

    // SIGTERM, then wait_exit().
    std::optional<int> terminate();

    [[nodiscard]] const std::string& ca() const { return certificates_.ca; }

private:
    std::uint16_t wait_port(const std::string& message) const;
    Result<http::HttpResponse> get(const std::string& path);

    testing::TestCertificates certificates_;
    OperatorProcess process_;
};

}  // namespace stoker::test
