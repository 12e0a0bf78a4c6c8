#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stoker::http {

// The proxies for requests, by URL scheme; empty: no proxy.
struct ProxySettings {
    std::string http{};   // URL of the proxy for http://
    std::string https{};  // URL of the proxy for https://, used by CONNECT
    std::string
        except{};  // hosts that are reached directly: "svc,.cluster.local,10.0.0.0/8" or "*"

    // The proxy for this URL, ignoring `except`.
    [[nodiscard]] const std::string& for_url(std::string_view url) const;

    bool operator==(const ProxySettings&) const = default;
};

// Reads the variables as curl and Python do, lower case first: https_proxy, HTTPS_PROXY;
// http_proxy, HTTP_PROXY; for both all_proxy, ALL_PROXY; no_proxy, NO_PROXY. `environment` behaves
// like getenv().
ProxySettings proxies_from_environment(const std::function<const char*(const char*)>& environment);

}  // namespace stoker::http
