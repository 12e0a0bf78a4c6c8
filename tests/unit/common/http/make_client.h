#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/http/http_client.h"

// Shared set-up of the HTTP client's tests.
namespace stoker::http {

inline std::unique_ptr<HttpClient> make_client(ClientOptions options = {}) {
    static const SystemClock clock;
    auto client = make_curl_client(std::move(options), clock);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
}

inline HttpRequest get(std::string url) {
    HttpRequest request;
    request.url = std::move(url);
    return request;
}

}  // namespace stoker::http
