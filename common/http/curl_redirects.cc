#include <charconv>
#include <cstdint>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/http/curl_call.h"
#include "common/http/local_address.h"

// Decides which redirects a transfer follows.
namespace stoker::http {

namespace {

// The port of an address; 0: not an internet address.
std::uint16_t port_of(const sockaddr& address) {
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    if (address.sa_family == AF_INET) {
        std::memcpy(&v4, &address, sizeof(v4));
    } else if (address.sa_family == AF_INET6) {
        std::memcpy(&v6, &address, sizeof(v6));
    }
    return ntohs(address.sa_family == AF_INET6 ? v6.sin6_port : v4.sin_port);
}

// Whether `proxy` ("[http://][user:password@]host[:port]") is on loopback, at this port.
bool is_local_proxy(const std::string& proxy, std::uint16_t port) {
    const auto user = proxy.rfind('@');
    const auto scheme = proxy.find("://");
    const std::string place = proxy.substr(
        user != std::string::npos     ? user + 1
        : scheme != std::string::npos ? scheme + 3
                                      : 0);
    std::uint16_t own = 1080;  // curl's default
    if (const auto colon = place.rfind(':'); colon != std::string::npos) {
        std::from_chars(place.data() + colon + 1, place.data() + place.size(), own);
    }
    return names_local_host(place) && own == port;
}

}  // namespace

void CurlCall::set_redirect_options() {
    if (request_.redirects_max == 0) {
        return;
    }
    CURL* easy = easy_.get();
    const bool is_https = request_.url.starts_with("https:");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, static_cast<long>(request_.redirects_max));
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    if (!names_local_host(request_.url)) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &CurlCall::on_open);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
    }
}

// Gets the resolved address, so a name that resolves to a local address is refused, too.
curl_socket_t CurlCall::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
    auto* call = static_cast<CurlCall*>(self);
    if (!call->may_reach(address->addr)) {
        call->verdict_ =
            fail(ErrorCode::kForbidden, "the server redirects to an address of this machine");
        return CURL_SOCKET_BAD;
    }
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Whether a connection to the address is allowed; always allowed for the request's own URL.
bool CurlCall::may_reach(const sockaddr& address) const {
    long redirects = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_REDIRECT_COUNT, &redirects);
    const AddressKind kind = address_kind(address);
    const ProxySettings& proxies = options_->proxies;
    const std::uint16_t port = port_of(address);
    const bool is_proxy = is_local_proxy(proxies.http, port) || is_local_proxy(proxies.https, port);
    return redirects == 0 || kind == AddressKind::kRemote ||
           (kind == AddressKind::kLoopback && is_proxy);
}

// Whether curl will follow this response with another request, by the rules of Curl_http_header().
bool CurlCall::will_redirect() const {
    return request_.redirects_max > 0 && status_ >= 300 && status_ < 400 &&
           find_header(response_headers_, "Location") != nullptr;
}

}  // namespace stoker::http
