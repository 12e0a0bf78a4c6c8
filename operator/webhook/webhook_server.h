#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/http/http_server.h"
#include "common/runtime/worker_pool.h"
#include "operator/sidecars/served_certificate.h"

namespace stoker::control {

// The HTTPS server that the API server calls: POST /inject with an AdmissionReview. The port opens
// with the first certificate. Answers are made on threads of their own, because they may ask the API
// server; a caller beyond kWaitingMax gets 503, which lets its pod through at once. Thread-safe, but
// stop() is called once.
class WebhookServer {
public:
    static constexpr int kWaitingMax = 64;

    // Makes the answer to a review; blocks. An error becomes a 4xx or 5xx.
    using Answer = std::function<Result<std::string>(const std::string& body)>;

    WebhookServer(std::string listen, Answer answer);
    ~WebhookServer();
    WebhookServer(const WebhookServer&) = delete;
    WebhookServer& operator=(const WebhookServer&) = delete;

    // Opens the port, or replaces its certificate. Errors are logged.
    void use_certificate(const ServedCertificate& certificate);

    // Waits for reviews in progress.
    void stop();

    // 0: not open yet.
    [[nodiscard]] std::uint16_t port();

    // Reviews that ended with an HTTP error: the API server lets the pod through.
    [[nodiscard]] std::uint64_t failures() const { return failures_; }

private:
    struct State {
        std::unique_ptr<http::HttpServer> server;
        std::unique_ptr<WorkerPool> pool;
        bool stopped = false;
    };

    void take(const http::ServerRequest& request, const http::Reply& reply);
    http::ServerResponse review(const std::string& body);
    void open(const ServedCertificate& certificate, State& state);

    std::string listen_;
    Answer answer_;
    std::atomic<int> waiting_{0};
    std::atomic<std::uint64_t> failures_{0};
    Guarded<State> state_;
};

}  // namespace stoker::control
