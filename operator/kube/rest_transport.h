#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/http/blocking_client.h"
#include "operator/kube/access.h"
#include "operator/kube/api_metrics.h"
#include "operator/kube/transport.h"

namespace stoker::control {

struct RestTransportOptions {
    std::string user_agent;  // "stoker-operator/0.1.0 (linux/amd64) lease"
    Bytes response_bytes_max = mib(256);
    std::uint32_t connections_max = 8;
    ApiMetrics* metrics = nullptr;  // must outlive the transport; null: nothing is counted
};

// ApiTransport over HTTP/1.1. Requests run on their callers' threads. Each transport has its own
// connections: give every informer and the lease a separate one, so that none waits for another.
// After a change of the CA, new requests use it and running streams continue. `access` and `clock`
// must outlive it; access may be shared.
class RestTransport final : public ApiTransport {
public:
    RestTransport(AccessSource& access, RestTransportOptions options, const Clock& clock);
    ~RestTransport() override;

    Result<ApiResponse> call(
        const ApiRequest& request, Duration time_limit, std::stop_token stop) override;
    Result<ApiStreamEnd> stream(
        const ApiRequest& request,
        Duration time_limit,
        const ApiStreamSink& sink,
        std::stop_token stop) override;

private:
    // One HTTP client with the credentials of its connections.
    struct Channel {
        std::string ca_pem;
        std::unique_ptr<http::BlockingClient> client;
    };

    Result<std::shared_ptr<Channel>> channel(const Access& access);
    Result<ApiResponse> attempt(
        const ApiRequest& request,
        Duration time_limit,
        const ApiStreamSink* sink,
        const std::stop_token& stop,
        std::string& authorization);
    Result<ApiResponse> with_fresh_credentials(
        const ApiRequest& request,
        Duration time_limit,
        const ApiStreamSink* sink,
        const std::stop_token& stop);
    [[nodiscard]] Result<ApiResponse> send(
        http::BlockingClient& client,
        http::HttpRequest request,
        const ApiStreamSink* sink,
        const std::stop_token& stop) const;
    [[nodiscard]] http::HttpRequest http_request(
        const ApiRequest& request, const Access& access, Duration time_limit, bool stream) const;

    AccessSource* access_;
    RestTransportOptions options_;
    const Clock* clock_;
    Guarded<std::shared_ptr<Channel>> channel_;
};

}  // namespace stoker::control
