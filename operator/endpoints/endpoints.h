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

// Where each of them listens, "host:port"; port 0 takes a free one.
struct EndpointSettings {
    std::string metrics;  // plain HTTP: /metrics; "": nowhere
    std::string probes;   // plain HTTP: /healthz, /readyz
    std::string debug;    // HTTPS: /debug/...; "": nowhere
};

// What they say. Called on the servers' threads and must not block, where nothing else is said; all
// must outlive the Endpoints.
struct EndpointSources {
    std::function<std::string()> metrics;  // Prometheus text
    // An error says what is wrong.
    std::function<Status()> healthy;
    std::function<Status()> ready;
    // By path. Every one needs a right; a page that is not here is 404.
    std::map<std::string, std::function<http::ServerResponse()>> debug_pages;
    // Whose token it is, made for kDebugAudience; kForbidden: nobody's. Blocks.
    std::function<Result<TokenOwner>(const std::string& token)> identify;
    // Whether they may GET `path`; kForbidden: no. Blocks.
    std::function<Status(const TokenOwner& owner, const std::string& path)> authorize;
};

// The HTTP side of the operator: three ports, so that whoever may probe it can neither read
// metrics, which name namespaces and jobs, nor the debug pages, which name everything.
//
// A debug page is given to whoever shows a token in the header X-Stoker-Token (the API server's pod
// proxy removes "Authorization") or "Authorization: Bearer": 401 without a good one, 403 without
// the right. Both answers are kept for ten seconds. The port opens with the first certificate.
//
// Thread-safe, but start() and stop() are called once each.
class Endpoints {
public:
    Endpoints(EndpointSettings settings, EndpointSources sources, const Clock& clock);
    ~Endpoints();
    Endpoints(const Endpoints&) = delete;
    Endpoints& operator=(const Endpoints&) = delete;

    // Metrics and probes. kUnavailable: a port is taken. kInvalidArgument: an address.
    Status start();

    // The debug port opens, or goes on with this one. Trouble is logged.
    void use_certificate(const ServedCertificate& certificate);

    // Reviews that are under way are waited for.
    void stop();

    // 0: it is not served, or not yet.
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
    AnswerCache<int> rights_;  // an HTTP status; kForbidden: 401
    Guarded<std::unique_ptr<WorkerPool>> reviewers_;
    Server metrics_;
    Server probes_;
    Guarded<Debug> debug_;
};

}  // namespace stoker::control
