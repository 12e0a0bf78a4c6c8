#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/http/http_server.h"
#include "common/runtime/worker_pool.h"
#include "operator/kube/client.h"
#include "operator/sidecars/answer_cache.h"
#include "operator/sidecars/served_certificate.h"

namespace stoker::control {

// Listening addresses, "host:port"; port 0 takes a free one.
struct EndpointSettings {
    std::string metrics;  // plain HTTP: /metrics; "": not served
    std::string probes;   // plain HTTP: /healthz, /readyz
    std::string debug;    // HTTPS: /debug/...; "": not served
};

// Content of the endpoints. Called on the servers' threads; must not block unless stated; all must
// outlive the Endpoints.
struct EndpointSources {
    std::function<std::string()> metrics;  // Prometheus text
    // The error is the body of the 503.
    std::function<Status()> healthy;
    std::function<Status()> ready;
    // Debug pages by path. Every page requires a right of its caller; unknown pages are 404.
    std::map<std::string, std::function<http::ServerResponse()>> debug_pages;
    // Returns the owner of a token for kDebugAudience; kForbidden: the token is invalid. Blocks.
    std::function<Result<TokenOwner>(const std::string& token)> identify;
    // Checks that the owner may GET `path`; kForbidden: no. Blocks.
    std::function<Status(const TokenOwner& owner, const std::string& path)> authorize;
};

// The operator's HTTP endpoints on three ports: a client that may probe can read neither metrics,
// which contain names of namespaces and jobs, nor the debug pages, which contain all names.
//
// A debug page needs a token in the header X-Stoker-Token (the API server's pod proxy removes
// "Authorization") or "Authorization: Bearer": 401 without a valid one, 403 without the right. Both
// results are cached for ten seconds. The port opens with the first certificate.
//
// Thread-safe, but start() and stop() are called once each.
class Endpoints {
public:
    Endpoints(EndpointSettings settings, EndpointSources sources, const Clock& clock);
    ~Endpoints();
    Endpoints(const Endpoints&) = delete;
    Endpoints& operator=(const Endpoints&) = delete;

    // Starts metrics and probes. kUnavailable: a port is taken. kInvalidArgument: bad address.
    Status start();

    // Opens the debug port, or replaces its certificate. Errors are logged.
    void use_certificate(const ServedCertificate& certificate);

    // Waits for reviews in progress.
    void stop();

    // 0: not served, or not yet.
    [[nodiscard]] std::uint16_t metrics_port() const { return metrics_ ? metrics_->port() : 0; }

    [[nodiscard]] std::uint16_t probes_port() const { return probes_ ? probes_->port() : 0; }

    [[nodiscard]] std::uint16_t debug_port() {
        const auto debug = debug_.lock();
        return debug->server ? debug->server->port() : 0;
    }

private:
    using Server = std::unique_ptr<http::HttpServer>;

    struct Debug {
        Server server;
        bool stopped = false;
    };

    Result<int> ask_rights(const std::string& question);
    void post(std::function<void()> task);
    void answer_debug(const http::ServerRequest& request, http::Reply reply);
    [[nodiscard]] http::ServerResponse debug_answer(
        const std::string& path, const Result<int>& right) const;

    EndpointSettings settings_;
    EndpointSources sources_;
    AnswerCache<int> rights_;  // by question; an HTTP status; kForbidden: 401
    Guarded<std::unique_ptr<WorkerPool>> reviewers_;
    Server metrics_;
    Server probes_;
    Guarded<Debug> debug_;
};

}  // namespace stoker::control
