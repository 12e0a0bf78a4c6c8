#include "common/http/local_address.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace stoker::http {

namespace {

constexpr std::array<std::uint8_t, 16> kAmazonMetadata = {
    0xFD, 0x00, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54};
constexpr std::uint32_t kAlibabaMetadata = 0x6464'64C8;  // 100.100.100.200

AddressKind kind_of_v4(std::uint32_t address) {
    if (address >> 24U == 127 || address >> 24U == 0) {
        return AddressKind::kLoopback;
    }
    return address >> 16U == 0xA9FE || address == kAlibabaMetadata ? AddressKind::kLinkLocal
                                                                   : AddressKind::kRemote;
}

AddressKind kind_of_v6(const in6_addr& address) {
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
        std::uint32_t v4 = 0;
        std::memcpy(&v4, address.s6_addr + 12, sizeof(v4));
        return kind_of_v4(ntohl(v4));
    }
    if (IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address)) {
        return AddressKind::kLoopback;
    }
    const bool is_metadata =
        std::equal(kAmazonMetadata.begin(), kAmazonMetadata.end(), address.s6_addr);
    return IN6_IS_ADDR_LINKLOCAL(&address) || is_metadata ? AddressKind::kLinkLocal
                                                          : AddressKind::kRemote;
}

// "host" of "http://host:port/path", without the brackets of an IPv6 address.
std::string host_of(std::string_view url) {
    const auto scheme = url.find("://");
    std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    if (rest.starts_with('[')) {
        return std::string{rest.substr(1, rest.find(']') - 1)};
    }
    return std::string{rest.substr(0, rest.find(':'))};
}

}  // namespace

AddressKind address_kind(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &address, sizeof(v4));
        return kind_of_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (address.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &address, sizeof(v6));
        return kind_of_v6(v6.sin6_addr);
    }
    return AddressKind::kRemote;
}

bool names_local_host(std::string_view url) {
    const std::string host = host_of(url);
    in_addr v4{};
    if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
        return kind_of_v4(ntohl(v4.s_addr)) != AddressKind::kRemote;
    }
    in6_addr v6{};
    if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
        return kind_of_v6(v6) != AddressKind::kRemote;
    }
    return host == "localhost";
}

}  // namespace stoker::http
