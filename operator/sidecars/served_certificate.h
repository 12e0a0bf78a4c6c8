#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/certificates/x509.h"

namespace stoker::control {

// What the operator shows to those who connect, and what a new sidecar must trust to accept it.
struct ServedCertificate {
    KeyPair leaf;
    std::string trust;  // PEM of one or more CAs; public

    bool operator==(const ServedCertificate&) const = default;
};

using ServedCertificatePtr = std::shared_ptr<const ServedCertificate>;

// The newest one; null until there is one. Thread-safe, cheap.
using CurrentCertificate = std::function<ServedCertificatePtr()>;

// tls.crt, tls.key and ca.crt of a mounted kubernetes.io/tls Secret, for those who bring their own.
// kNotFound: a file cannot be read. kCorruption: not PEM, or the key is not the certificate's.
Result<ServedCertificate> read_served_certificate(const std::string& directory);

}  // namespace stoker::control
