#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker::control {

struct CertificateFiles {
    std::string certificate;  // paths
    std::string key;
};

// tls.crt and tls.key of a mounted kubernetes.io/tls Secret. They are loaded once to be sure that
// gRPC can use them: its own complaint comes only at the first handshake. kNotFound: a file cannot
// be read. kCorruption: not PEM, or the key is not the certificate's.
Result<CertificateFiles> find_certificate(const std::string& directory);

// ca.crt of the same Secret: what sidecars have to trust. Errors as above; PEM is not looked into.
Result<std::string> read_ca(const std::string& directory);

}  // namespace stoker::control
