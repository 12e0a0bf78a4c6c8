#include "operator/endpoints/endpoints.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/config/host_port.h"
#include "common/http/headers.h"
#include "common/log/log.h"
#include "operator/api/debug_api.h"
#include "operator/sidecars/token_review.h"

namespace stoker::control {

namespace {

using http::Reply;
using http::ServerRequest;
using http::ServerResponse;

constexpr std::size_t kReviewers = 2;
constexpr std::size_t kWaitingMax = 32;
constexpr std::size_t kAnswersMax = 1024;
constexpr std::uint32_t kDebugConnectionsMax = 64;
constexpr Duration kKeep = std::chrono::seconds{10};
constexpr std::string_view kBearer = "Bearer ";

AnswerCacheOptions cache_options() {
    return {kKeep, kKeep, kAnswersMax, kWaitingMax};
}

ServerResponse plain(int status, std::string words) {
    return {status, "text/plain", std::move(words) + "\n"};
}

ServerResponse of_status(const Status& status, int refusal) {
    return status ? plain(200, "ok") : plain(refusal, status.error().message);
}

std::string token_of(const ServerRequest& request) {
    if (const std::string* own = http::find_header(request.headers, kDebugTokenHeader)) {
        return *own;
    }
    const std::string* bearer = http::find_header(request.headers, "Authorization");
    return bearer != nullptr && bearer->starts_with(kBearer) ? bearer->substr(kBearer.size()) : "";
}

ServerResponse unauthorized(const std::string& words) {
    ServerResponse response = plain(401, words);
    response.headers.push_back({"WWW-Authenticate", "Bearer"});
    return response;
}

Result<std::unique_ptr<http::HttpServer>> listen(
    const std::string& where, http::ServerOptions options, http::LaterHandler handler) {
    STOKER_TRY(const config::HostPort address, config::parse_host_port(where));
    options.address = address.host;
    options.port = address.port;
    return http::HttpServer::start(std::move(options), std::move(handler));
}

// The cache key "path
// token".
std::string question_of(std::string_view path, const std::string& token) {
    return fmt::format("{}\n{}", path, token);
}

}  // namespace

Endpoints::Endpoints(EndpointSettings settings, EndpointSources sources, const Clock& clock)
    : settings_(std::move(settings)),
      sources_(std::move(sources)),
      rights_(
          [this](const std::string& question) { return ask_rights(question); },
          [this](std::function<void()> task) { post(std::move(task)); },
          clock,
          cache_options()),
      reviewers_(std::make_unique<WorkerPool>("debug-review", kReviewers)) {}

Result<int> Endpoints::ask_rights(const std::string& question) {
    const std::size_t end = question.find('\n');
    STOKER_TRY(const TokenOwner owner, sources_.identify(question.substr(end + 1)));
    const Status allowed = sources_.authorize(owner, question.substr(0, end));
    if (!allowed && allowed.error().code != ErrorCode::kForbidden) {
        return fail(allowed.error());
    }
    return allowed ? 200 : 403;
}

// After stop() no caller waits for the response.
void Endpoints::post(std::function<void()> task) {
    if (auto reviewers = reviewers_.lock(); *reviewers) {
        (*reviewers)->post(std::move(task));
    }
}

Endpoints::~Endpoints() {
    stop();
}

Status Endpoints::start() {
    const auto probes = [this](const ServerRequest& request, const Reply& reply) {
        reply(
            request.path() == "/healthz" ? of_status(sources_.healthy(), 500)
            : request.path() == "/readyz"
                ? of_status(sources_.ready(), 503)
                : plain(404, "this port serves only /healthz and /readyz"));
    };
    STOKER_TRY(probes_, listen(settings_.probes, {}, probes));
    log::info("serving probes", {{"port", probes_->port()}});
    if (settings_.metrics.empty()) {
        return {};
    }
    const auto metrics = [this](const ServerRequest& request, const Reply& reply) {
        reply(
            request.path() == "/metrics"
                ? ServerResponse{200, "text/plain; version=0.0.4; charset=utf-8", sources_.metrics()}
                : plain(404, "this port serves only /metrics"));
    };
    STOKER_TRY(metrics_, listen(settings_.metrics, {}, metrics));
    log::info("serving metrics", {{"port", metrics_->port()}});
    return {};
}

void Endpoints::use_certificate(const ServedCertificate& certificate) {
    auto debug = debug_.lock();
    if (settings_.debug.empty() || debug->stopped) {
        return;
    }
    if (debug->server) {
        const Status replaced =
            debug->server->replace_certificate(certificate.leaf.certificate, certificate.leaf.key);
        if (!replaced) {
            log::error(
                "the debug port keeps its old certificate", {{"error", replaced.error().message}});
        }
        return;
    }
    http::ServerOptions options;
    options.cert_pem = certificate.leaf.certificate;
    options.key_pem = certificate.leaf.key;
    options.connections_max = kDebugConnectionsMax;
    options.body_bytes_max = kib(4);
    options.drain_timeout = std::chrono::seconds{1};
    auto started = listen(
        settings_.debug, std::move(options), [this](const ServerRequest& request, Reply reply) {
            answer_debug(request, std::move(reply));
        });
    if (!started) {
        log::error("cannot serve the debug pages", {{"error", started.error().message}});
        return;
    }
    debug->server = *std::move(started);
    log::info("serving debug pages", {{"port", debug->server->port()}});
}

void Endpoints::answer_debug(const ServerRequest& request, Reply reply) {
    const std::string path{request.path()};
    const std::string token = token_of(request);
    if (!looks_like_token(token)) {
        reply(unauthorized(fmt::format(
            "a ServiceAccount token for audience {} is needed, in the header {}",
            kDebugAudience,
            kDebugTokenHeader)));
        return;
    }
    if (request.method != "GET") {
        reply(plain(405, "only GET"));
        return;
    }
    rights_.ask(
        question_of(path, token), [this, path, reply = std::move(reply)](const Result<int>& right) {
            reply(debug_answer(path, right));
        });
}

ServerResponse Endpoints::debug_answer(const std::string& path, const Result<int>& right) const {
    if (!right) {
        return right.error().code == ErrorCode::kForbidden ? unauthorized(right.error().message)
                                                           : plain(503, right.error().message);
    }
    if (*right != 200) {
        return plain(*right, fmt::format("the owner of this token may not get {}", path));
    }
    const auto page = sources_.debug_pages.find(path);
    return page != sources_.debug_pages.end() ? page->second() : plain(404, "no such page");
}

void Endpoints::stop() {
    std::unique_ptr<WorkerPool> reviewers = std::move(*reviewers_.lock());
    Server debug;
    {
        auto state = debug_.lock();
        state->stopped = true;
        debug = std::move(state->server);
    }
    reviewers.reset();  // first: they answer requests of the server
    debug.reset();
    metrics_.reset();
    probes_.reset();
}

}  // namespace stoker::control
