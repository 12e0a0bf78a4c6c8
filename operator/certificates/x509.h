#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

// Keys and certificates as values: PEM in, PEM out, nothing on disk. Keys are ECDSA P-256. Pure but
// for OpenSSL's random numbers. Thread-safe.
namespace stoker::control {

// A certificate, or a chain that begins with it, and the private key of the first one. PEM. Keep
// `key` in memory: it is never logged and never written to a file.
struct KeyPair {
    std::string certificate;
    std::string key;

    bool operator==(const KeyPair&) const = default;
};

// Seconds count; the rest of a time is dropped.
struct Validity {
    WallTime not_before;
    WallTime not_after;
};

// What a certificate says about itself.
struct CertificateFacts {
    Validity validity;
    std::string common_name;
    bool is_ca = false;
};

// A self-signed CA with a new key. kInternal: OpenSSL refused.
Result<KeyPair> make_ca(const std::string& common_name, Validity validity);

// A TLS server's certificate with a new key for these DNS names (at least one), signed by `ca`.
// kInvalidArgument: no name. kCorruption: `ca` is no pair.
Result<KeyPair> make_leaf(
    const KeyPair& ca, const std::vector<std::string>& dns_names, Validity validity);

// The key of the CA certificate `subject`, certified by `issuer` as an intermediate CA: who trusts
// only the issuer then accepts what the subject signs. Returns the certificate. kCorruption: an
// argument cannot be read.
Result<std::string> cross_sign(
    const std::string& subject, const KeyPair& issuer, Validity validity);

// Facts of the first certificate in `pem`. kCorruption: there is none.
Result<CertificateFacts> read_certificate(std::string_view pem);

// kCorruption: the certificate or the key cannot be read, or they do not belong together.
Status check_pair(const KeyPair& pair);

}  // namespace stoker::control
