#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

// Non-blocking TCP sockets between peers. Hosts are IP addresses: no name server is asked.
namespace stoker::sidecar {

// Listens on `host` and `port` (0: any free one). kInvalidArgument: `host` is no IP address; errors
// of posix_error().
Result<UniqueFd> listen_tcp(const std::string& host, std::uint16_t port);

// "host:port" of this end.
Result<std::string> local_address(int socket);

// Begins to connect to "host:port": the socket is writable once it is connected or has failed.
// kInvalidArgument: `address` is no IP address and port. kUnavailable: it cannot be reached.
Result<UniqueFd> connect_tcp(const std::string& address);

// The result of connect_tcp() once the socket is writable. kUnavailable: it could not be reached.
Status connect_result(int socket);

// Disables delays of small writes, and ends a connection whose peer is silent: after about
// `silence_max` without an acknowledgement (whole seconds, at least 3).
void set_peer_options(int socket, Duration silence_max);

}  // namespace stoker::sidecar
