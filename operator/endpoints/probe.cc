#include "operator/endpoints/probe.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"

namespace stoker::control {

int probe(const std::string& url) {
    const SystemClock clock;
    const auto client = http::make_curl_client({}, clock);
    if (!client) {
        fmt::print(stderr, "{}\n", client.error().message);
        return EXIT_FAILURE;
    }
    http::HttpRequest request;
    request.url = url;
    request.total_timeout = std::chrono::seconds{10};
    const auto response = (*client)->call(std::move(request));
    if (!response) {
        fmt::print(stderr, "{}\n", response.error().message);
        return EXIT_FAILURE;
    }
    fmt::print("{} {}\n", response->status, response->body);
    return response->status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace stoker::control
