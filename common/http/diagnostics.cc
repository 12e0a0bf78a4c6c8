#include "common/http/diagnostics.h"

#include <string>
#include <utility>

namespace stoker::http {

namespace {

ServerResponse plain(int status, std::string body) {
    return {status, "text/plain; charset=utf-8", std::move(body) + "\n", {}};
}

ServerResponse verdict(const Status& status) {
    return status ? plain(200, "ok") : plain(503, status.error().message);
}

}  // namespace

Handler diagnostics_handler(const metrics::Registry& registry, Probes probes) {
    return [&registry, probes = std::move(probes)](const ServerRequest& request) {
        if (request.method != "GET") {
            return plain(405, "only GET and HEAD here");
        }
        if (request.path() == "/metrics") {
            return ServerResponse{
                200, std::string{metrics::Registry::kContentType}, registry.expose(), {}};
        }
        if (request.path() == "/healthz") {
            return verdict(probes.healthy());
        }
        if (request.path() == "/readyz") {
            return verdict(probes.ready());
        }
        return plain(404, "try /metrics, /healthz or /readyz");
    };
}

}  // namespace stoker::http
