#pragma once

#include <string_view>

#include <sys/socket.h>

// Which addresses a redirect of a foreign server must not lead to: those of this machine, and those of
// cloud metadata services, which give the node's identity. Pure.
namespace stoker::http {

enum class AddressKind {
    kRemote,
    kLoopback,   // or unspecified, which connects to loopback
    kLinkLocal,  // 169.254.0.0/16 and fe80::/10, and the metadata services outside them
};

// IPv4-mapped IPv6 addresses count as IPv4. Other families are kRemote.
AddressKind address_kind(const sockaddr& address);

// Whether the URL's host is "localhost" or an address that is not kRemote.
bool names_local_host(std::string_view url);

}  // namespace stoker::http
