#pragma once

#include "sidecar/peers/openssl.h"

namespace stoker::sidecar {

// Flags that the connection's owner sets and that tell TLS how to use the socket, so that the same
// bytes need fewer system calls and wake-ups.
struct SocketUse {
    int socket = -1;
    bool more_follows = false;  // the next record comes at once: the kernel may wait and join them
    bool is_drained = false;    // a read got less than it asked for; the connection's owner sets it
                                // to false when the socket becomes readable
};

// A BIO over `use`, which must outlive it; it does not close the socket. Never raises SIGPIPE.
// nullptr: OpenSSL failed.
BioPtr make_socket_bio(SocketUse& use);

}  // namespace stoker::sidecar
