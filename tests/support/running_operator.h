#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// The real stoker-operator as a process, outside of a cluster, with ports of its own choice and
// short lease times. Ends with SIGKILL if nobody ended it. Not thread-safe.
class RunningOperator {
public:
    struct Options {
        std::string api_server;  // URL
        std::string pod_name = "operator-0";
        std::uint32_t grant_seconds = 10;
        bool leader_election = true;
        std::uint32_t lease_seconds = 2;  // renewed every 200 ms, given up at three quarters
        // It makes its certificates itself, and sidecars call it "localhost". Otherwise it gets
        // those of ca().
        bool own_ca = false;
        bool metrics = true;
        std::string watch_namespaces{};  // "a, b"; none: all
    };

    explicit RunningOperator(const Options& options);
    ~RunningOperator();
    RunningOperator(const RunningOperator&) = delete;
    RunningOperator& operator=(const RunningOperator&) = delete;

    // Its caches are filled. False when it did not come to that in half a minute.
    bool wait_ready();

    // It leads and serves sidecars; "localhost:port".
    std::string wait_control_address();

    // A GET at its port for metrics, or for probes where the path is one; 0 when there is no
    // answer.
    int http_status(const std::string& path);
    std::string http_body(const std::string& path);

    // A GET at its HTTPS port for debug pages, whoever's certificate it shows.
    Result<http::HttpResponse> debug_get(const std::string& path, http::Headers headers = {});

    // It does not listen for metrics at all.
    [[nodiscard]] bool serves_metrics() const { return logged_port("serving metrics") != 0; }

    // What its log says so far, one JSON object a line.
    [[nodiscard]] std::string log() const;

    void signal(int number) const;

    // Waits for its end; the exit code, or 128 + the signal. nullopt: it still runs after half a
    // minute.
    std::optional<int> wait_exit();

    // SIGTERM, then wait_exit().
    std::optional<int> terminate();

    [[nodiscard]] const std::string& ca() const { return certificates_.ca; }

private:
    void write_files(const Options& options);
    void start(const Options& options);
    // The port in the log line with this message; 0: not there yet.
    [[nodiscard]] std::uint16_t logged_port(const std::string& message) const;
    std::uint16_t wait_port(const std::string& message) const;
    Result<http::HttpResponse> get(const std::string& path);

    TempFolder folder_;
    testing::TestCertificates certificates_;
    pid_t pid_ = -1;
};

}  // namespace stoker::test
