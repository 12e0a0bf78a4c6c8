#include "operator/webhook/webhook_server.h"

#include <utility>

#include "common/config/host_port.h"
#include "common/http/headers.h"
#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr std::size_t kThreads = 4;
constexpr Duration kAnswerTimeout = std::chrono::seconds{5};  // the API server's own limit

http::ServerResponse plain(int status, std::string words) {
    return {status, "text/plain", std::move(words) + "\n"};
}

// HTTP status of a failed review: 400 for a mistake of the caller, else 5xx.
int status_of(ErrorCode code) {
    return code == ErrorCode::kInvalidArgument ? 400 : code == ErrorCode::kUnavailable ? 503 : 500;
}

bool is_json(const http::ServerRequest& request) {
    const std::string* type = http::find_header(request.headers, "Content-Type");
    return type != nullptr && type->starts_with("application/json");
}

}  // namespace

WebhookServer::WebhookServer(std::string listen, Answer answer)
    : listen_(std::move(listen)),
      answer_(std::move(answer)) {
    state_.lock()->pool = std::make_unique<WorkerPool>("webhook", kThreads);
}

WebhookServer::~WebhookServer() {
    stop();
}

void WebhookServer::use_certificate(const ServedCertificate& certificate) {
    auto state = state_.lock();
    if (state->stopped) {
        return;
    }
    if (!state->server) {
        open(certificate, *state);
        return;
    }
    const Status replaced =
        state->server->replace_certificate(certificate.leaf.certificate, certificate.leaf.key);
    if (!replaced) {
        log::error("the webhook keeps its old certificate", {{"error", replaced.error().message}});
    }
}

void WebhookServer::open(const ServedCertificate& certificate, State& state) {
    const Result<config::HostPort> address = config::parse_host_port(listen_);
    if (!address) {
        log::error("cannot serve the webhook", {{"error", address.error().message}});
        return;
    }
    http::ServerOptions options;
    options.address = address->host;
    options.port = address->port;
    options.cert_pem = certificate.leaf.certificate;
    options.key_pem = certificate.leaf.key;
    options.answer_timeout = kAnswerTimeout;
    auto started = http::HttpServer::start(
        std::move(options),
        [this](const http::ServerRequest& request, http::Reply reply) { take(request, reply); });
    if (!started) {
        log::error("cannot serve the webhook", {{"error", started.error().message}});
        return;
    }
    state.server = *std::move(started);
    log::info("serving the webhook", {{"port", state.server->port()}});
}

void WebhookServer::take(const http::ServerRequest& request, const http::Reply& reply) {
    if (request.path() != "/inject" || request.method != "POST" || !is_json(request)) {
        reply(plain(request.path() == "/inject" ? 415 : 404, "POST an AdmissionReview to /inject"));
        return;
    }
    if (waiting_.fetch_add(1) >= kWaitingMax) {
        --waiting_;
        ++failures_;
        reply(plain(503, "too many reviews at a time"));
        return;
    }
    auto state = state_.lock();
    if (state->pool) {
        state->pool->post([this, body = request.body, reply] {
            reply(review(body));
            --waiting_;
        });
    }
}

http::ServerResponse WebhookServer::review(const std::string& body) {
    Result<std::string> answer = answer_(body);
    if (answer) {
        return {200, "application/json", *std::move(answer)};
    }
    ++failures_;
    log::warning("a pod was not reviewed", {{"error", answer.error().message}});
    return plain(status_of(answer.error().code), answer.error().message);
}

void WebhookServer::stop() {
    std::unique_ptr<WorkerPool> pool;
    std::unique_ptr<http::HttpServer> server;
    {
        auto state = state_.lock();
        state->stopped = true;
        pool = std::move(state->pool);
        server = std::move(state->server);
    }
    pool.reset();  // first: its tasks answer requests of the server
    server.reset();
}

std::uint16_t WebhookServer::port() {
    auto state = state_.lock();
    return state->server ? state->server->port() : 0;
}

}  // namespace stoker::control
