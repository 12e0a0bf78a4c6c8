#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/certificates/x509.h"

namespace stoker::control {

// The operator's certificate for clients, and the trust bundle for new sidecars.
struct ServedCertificate {
    KeyPair leaf;
    std::string trust;  // PEM of one or more CAs; public

    bool operator==(const ServedCertificate&) const = default;
};

using ServedCertificatePtr = std::shared_ptr<const ServedCertificate>;

// Returns the newest certificate; null until there is one. Thread-safe, cheap.
using CurrentCertificate = std::function<ServedCertificatePtr()>;

// Reads tls.crt, tls.key and ca.crt of a mounted kubernetes.io/tls Secret, for administrators with
// their own CA. kNotFound: a file cannot be read. kCorruption: not PEM, or certificate and key do
// not match.
Result<ServedCertificate> read_served_certificate(const std::string& directory);

}  // namespace stoker::control
