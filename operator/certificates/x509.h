#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

// Keys and certificates as values: PEM in, PEM out, nothing on disk. Keys are ECDSA P-256. Pure
// except for OpenSSL's random numbers. Thread-safe.
namespace stoker::control {

// A certificate, or a chain that begins with it, and the private key of the first one. PEM. Keep
// `key` in memory: never log it, never write it to a file.
struct KeyPair {
    std::string certificate;
    std::string key;

    bool operator==(const KeyPair&) const = default;
};

// Whole seconds; fractions are dropped.
struct Validity {
    WallTime not_before;
    WallTime not_after;
};

// The relevant fields of a certificate.
struct CertificateFacts {
    Validity validity;
    std::string common_name;
    bool is_ca = false;
};

// A self-signed CA with a new key. kInternal: OpenSSL failed.
Result<KeyPair> make_ca(const std::string& common_name, Validity validity);

// A TLS server certificate with a new key for these DNS names (at least one), signed by `ca`.
// kInvalidArgument: no name. kCorruption: `ca` is not a valid pair.
Result<KeyPair> make_leaf(
    const KeyPair& ca, const std::vector<std::string>& dns_names, Validity validity);

inline constexpr std::size_t kPeerUrisMax = 64;

// A certificate of TLS client and server for the public key of `request` (PKCS#10, PEM) and these
// URIs (1 to kPeerUrisMax), signed by `ca`. Nothing else is taken from the request. Returns the
// certificate. kInvalidArgument: the request cannot be parsed, its signature is wrong, its key is
// not P-256, or a URI has characters other than letters, digits and ":/._-". kCorruption: `ca` is
// not a valid pair.
Result<std::string> certify_peer(
    const KeyPair& ca,
    const std::string& request,
    const std::vector<std::string>& uris,
    Validity validity);

// Certifies the key of the CA certificate `subject` by `issuer` as an intermediate CA: clients that
// trust only the issuer then accept the subject's signatures. Returns the certificate. kCorruption:
// an argument cannot be parsed.
Result<std::string> cross_sign(
    const std::string& subject, const KeyPair& issuer, Validity validity);

// Facts of the first certificate in `pem`. kCorruption: there is none.
Result<CertificateFacts> read_certificate(std::string_view pem);

// Checks that certificate and key match. kCorruption: one cannot be parsed, or they do not match.
Status check_pair(const KeyPair& pair);

}  // namespace stoker::control
