#pragma once

#include <string>

namespace stoker::testing {

// A self-signed CA and a leaf for localhost, 127.0.0.1 and ::1, in PEM, valid for one day. Each call
// makes new keys.
struct TestCertificates {
    std::string ca;
    std::string certificate;
    std::string key;
};

TestCertificates make_certificates();

// Writes ca.crt, tls.crt and tls.key to `directory`, as the kubelet mounts a kubernetes.io/tls Secret.
void write_certificates(const TestCertificates& certificates, const std::string& directory);

}  // namespace stoker::testing
