#pragma once

#include <string>

// Certificates for tests of TLS, generated on demand, valid for an hour.
namespace stoker::test {

struct Certificate {
    std::string cert_pem;
    std::string key_pem;
};

// A self-signed certificate (its own CA) for "localhost" and 127.0.0.1, ECDSA P-256. Each call
// makes a new key.
Certificate make_certificate(const std::string& common_name);

}  // namespace stoker::test
