#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "sidecar/peers/openssl.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/peers/socket_bio.h"

namespace stoker::sidecar {

using TlsContext = std::shared_ptr<SSL_CTX>;

// TLS 1.3 for both ends of peers' connections: certificates of both are verified against `trust`,
// no host names, no session tickets, protocol "stoker-peer/1". kInvalidArgument: a text is no PEM,
// there is no trusted certificate, or the key belongs to another certificate.
Result<TlsContext> make_tls_context(const PeerCredentials& credentials);

enum class TlsEnd { kClient, kServer };
// Begins TLS on `use`.socket; `use` must outlive the result. kInternal: OpenSSL failed.
Result<SslPtr> make_tls(const TlsContext& context, SocketUse& use, TlsEnd end);

// The peer's identity after the handshake. kForbidden: no verified certificate, not a peer's
// certificate, or another protocol.
Result<PeerIdentity> verified_peer(const SSL& tls);

// The reason why an operation on `tls` failed. kForbidden: a certificate was refused, by us or by
// the peer. kUnavailable: any other reason. Empties the thread's OpenSSL error queue. `ssl_error`
// is SSL_get_error(), `error_number` is errno, both right after the operation.
Error tls_error(const SSL& tls, int ssl_error, int error_number);

}  // namespace stoker::sidecar
