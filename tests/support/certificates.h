#pragma once

#include <string>

namespace stoker::testing {

// A self-signed CA and a leaf for localhost, 127.0.0.1 and ::1, all PEM, valid from now for a day.
// Fresh keys each time.
struct TestCertificates {
    std::string ca;
    std::string certificate;
    std::string key;
};

TestCertificates make_certificates();

// ca.crt, tls.crt and tls.key in `directory`, as the kubelet mounts a kubernetes.io/tls Secret.
void write_certificates(const TestCertificates& certificates, const std::string& directory);

}  // namespace stoker::testing
