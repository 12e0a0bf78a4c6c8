#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/certificates/x509.h"

// The control link's certificate authority over the years: a value that changes with time and is
// kept in a Secret. docs/adr/0009-the-operator-is-its-own-ca.md says why it is so.
namespace stoker::control {

struct AuthorityTerms {
    Duration ca_lifetime = std::chrono::hours{24} * 3 * 365;
    // So long before a CA's end its successor is made.
    Duration ca_renewal = std::chrono::hours{24} * 365;
    // So long a CA is trusted by new jobs before it signs.
    Duration overlap = std::chrono::hours{24} * 30;
    Duration leaf_lifetime = std::chrono::hours{24};

    bool operator==(const AuthorityTerms&) const = default;
};

// Certificates are valid from an hour before they were made: clocks differ.
inline constexpr Duration kBackdated = std::chrono::hours{1};

// One CA signs. At times a second one is trusted already (`next`) or still (`previous`). `bridge`
// is the key of `signing` certified by `previous`, or of `next` by `signing`; the server sends it
// with its leaf, so a sidecar that trusts only the older CA goes on until that one expires.
struct Authority {
    KeyPair signing;
    std::optional<KeyPair> next;
    std::string previous;  // its key is forgotten
    std::string bridge;

    bool operator==(const Authority&) const = default;
};

// What of a Secret's data an Authority is kept in, decoded: "signing.crt", "signing.key",
// "next.crt", "next.key", "previous.crt", "bridge.crt"; "ca.crt" is the trust bundle, for people.
using SecretData = std::map<std::string, std::string>;

SecretData print_authority(const Authority& authority);

// nullopt: there is nothing yet. kCorruption: something is there that is not ours; it must not be
// overwritten.
Result<std::optional<Authority>> parse_authority(const SecretData& data);

// The authority as it should be at `now`, given as it was (nullopt: none yet). Makes keys. Returns
// an equal value when nothing is due. `name` begins the common name of each CA.
Result<Authority> advance_authority(
    const std::optional<Authority>& before,
    const std::string& name,
    const AuthorityTerms& terms,
    WallTime now);

// PEM of all CAs that a new sidecar should trust: signing, then next, then previous.
std::string trust_bundle(const Authority& authority);

// A leaf of the signing CA for `dns_names`, followed by the bridge where one is needed. It never
// outlives its CA.
Result<KeyPair> issue_leaf(
    const Authority& authority,
    const std::vector<std::string>& dns_names,
    const AuthorityTerms& terms,
    WallTime now);

// A third of its life is left, or less. Or it is not valid yet: the clock was ahead when it was
// made.
bool is_due(const Validity& leaf, WallTime now);

}  // namespace stoker::control
