#include "operator/kube/rest_transport.h"

#include <utility>

#include "common/log/log.h"

namespace stoker::control {

namespace {

// The text of a Warning header: `299 - "text"`.
std::string warning_text(const std::string& header) {
    const auto open = header.find('"');
    const auto close = header.rfind('"');
    return open == std::string::npos || close <= open ? header
                                                      : header.substr(open + 1, close - open - 1);
}

void take_head(ApiResponse& response, int status, const http::Headers& headers) {
    response.status = status;
    for (const http::Header& header : headers) {
        if (http::equal_ignoring_case(header.name, "Retry-After")) {
            response.retry_after = header.value;
        } else if (http::equal_ignoring_case(header.name, "Warning")) {
            response.warnings.push_back(warning_text(header.value));
        }
    }
}

}  // namespace

RestTransport::RestTransport(AccessSource& access, RestTransportOptions options, const Clock& clock)
    : access_(&access),
      options_(std::move(options)),
      clock_(&clock) {}

RestTransport::~RestTransport() = default;

Result<ApiResponse> RestTransport::call(
    const ApiRequest& request, Duration time_limit, std::stop_token stop) {
    return with_fresh_credentials(request, time_limit, nullptr, stop);
}

Result<ApiStreamEnd> RestTransport::stream(
    const ApiRequest& request,
    Duration time_limit,
    const ApiStreamSink& sink,
    std::stop_token stop) {
    return with_fresh_credentials(request, time_limit, &sink, stop);
}

Result<ApiResponse> RestTransport::with_fresh_credentials(
    const ApiRequest& request,
    Duration time_limit,
    const ApiStreamSink* sink,
    const std::stop_token& stop) {
    std::string authorization;
    auto response = attempt(request, time_limit, sink, stop, authorization);
    if (response && response->status == 401 && access_->reject(authorization)) {
        log::info("the API server refused our credentials; trying newer ones");
        return attempt(request, time_limit, sink, stop, authorization);
    }
    return response;
}

Result<std::shared_ptr<RestTransport::Channel>> RestTransport::channel(const Access& access) {
    auto current = channel_.lock();
    if (*current && (*current)->ca_pem == access.ca_pem) {
        return *current;
    }
    http::ClientOptions options;
    options.ca_pem = access.ca_pem;
    options.unix_socket = access.unix_socket;
    options.connections_max = options_.connections_max;
    options.user_agent = options_.user_agent;
    STOKER_TRY(auto client, http::BlockingClient::make(std::move(options), *clock_));
    *current = std::make_shared<Channel>(Channel{access.ca_pem, std::move(client)});
    return *current;
}

http::HttpRequest RestTransport::http_request(
    const ApiRequest& request, const Access& access, Duration time_limit, bool stream) const {
    http::HttpRequest out;
    out.method = to_string(request.verb);
    out.url = access.server + request.target;
    out.body = request.body;
    out.total_timeout = time_limit;
    out.response_bytes_max = stream ? Bytes::unlimited() : options_.response_bytes_max;
    out.accept_gzip = request.traffic == Traffic::kList;
    out.headers.push_back({"Accept", request.accept});
    if (!request.content_type.empty()) {
        out.headers.push_back({"Content-Type", request.content_type});
    }
    for (const auto& [name, value] : request.headers) {
        out.headers.push_back({name, value});
    }
    if (!access.authorization.empty()) {
        out.headers.push_back({"Authorization", access.authorization});
    }
    return out;
}

Result<ApiResponse> RestTransport::attempt(
    const ApiRequest& request,
    Duration time_limit,
    const ApiStreamSink* sink,
    const std::stop_token& stop,
    std::string& authorization) {
    STOKER_TRY(const Access access, access_->get());
    authorization = access.authorization;
    STOKER_TRY(const auto used, channel(access));
    const TimePoint sent_at = clock_->now();
    auto outcome =
        send(*used->client, http_request(request, access, time_limit, sink != nullptr), sink, stop);
    if (options_.metrics != nullptr) {
        options_.metrics->observe(request, outcome, clock_->now() - sent_at);
    }
    return outcome;
}

Result<ApiResponse> RestTransport::send(
    http::BlockingClient& client,
    http::HttpRequest request,
    const ApiStreamSink* sink,
    const std::stop_token& stop) const {
    ApiResponse response;
    http::HttpSink to;
    to.on_response = [&](int status, const http::Headers& headers) {
        take_head(response, status, headers);
        if (sink != nullptr && status == 200) {
            sink->on_open();
        }
    };
    to.on_data = [&](std::span<const std::byte> data) {
        const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
        if (sink != nullptr && response.status == 200) {
            return sink->on_bytes(bytes);
        }
        response.body += bytes;
        return Bytes{response.body.size()} <= options_.response_bytes_max;
    };
    STOKER_TRY_VOID(client.call(std::move(request), std::move(to), stop));
    return response;
}

}  // namespace stoker::control
