#pragma once

#include <memory>

#include <grpcpp/security/server_credentials.h>

#include "operator/sidecars/served_certificate.h"

// Private to operator/sidecars.
namespace stoker::control {

// TLS for a gRPC server that calls `current` at each handshake: a new certificate serves the next
// connection, and open ones continue. Keys stay in memory (gRPC 1.51 offers only files). Must
// outlive the server.
std::shared_ptr<grpc::ServerCredentials> reloading_credentials(CurrentCertificate current);

}  // namespace stoker::control
