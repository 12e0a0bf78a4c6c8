#pragma once

#include <string_view>

#include <sys/socket.h>

// Addresses to which a redirect of an untrusted server must not lead: those of this machine, and
// those of cloud metadata services, which hand out the node's identity. Pure.
namespace stoker::http {

enum class AddressKind {
    kRemote,
    kLoopback,   // or unspecified, which connects to loopback
    kLinkLocal,  // 169.254.0.0/16 and fe80::/10, and the metadata services outside them
};

// The kind of an address. IPv4-mapped IPv6 addresses count as IPv4; other families are kRemote.
AddressKind address_kind(const sockaddr& address);

// Whether the URL's host is "localhost" or an address that is not kRemote.
bool names_local_host(std::string_view url);

}  // namespace stoker::http
