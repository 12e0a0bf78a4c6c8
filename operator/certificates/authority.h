#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/certificates/x509.h"

// The control link's certificate authority and its rotation: a value that is kept in a Secret.
// docs/adr/0009-the-operator-is-its-own-ca.md has the reasons.
namespace stoker::control {

struct AuthorityTerms {
    Duration ca_lifetime = std::chrono::hours{24} * 3 * 365;
    // A successor is created this long before a CA expires.
    Duration ca_renewal = std::chrono::hours{24} * 365;
    // New jobs trust a CA this long before it signs.
    Duration overlap = std::chrono::hours{24} * 30;
    Duration leaf_lifetime = std::chrono::hours{24};

    bool operator==(const AuthorityTerms&) const = default;
};

// Certificates are valid from an hour before their creation, because clocks differ.
inline constexpr Duration kBackdated = std::chrono::hours{1};

// One CA signs. During a rotation a second one is trusted, too: the coming one (`next`) or the old
// one (`previous`). `bridge` is the key of `signing` certified by `previous`, or of `next` by
// `signing`; the server sends it with its leaf, so a sidecar that trusts only the older CA works
// until that one expires.
struct Authority {
    KeyPair signing;
    std::optional<KeyPair> next;
    std::string previous;  // its private key is deleted
    std::string bridge;

    bool operator==(const Authority&) const = default;
};

// The entries of a Secret that hold an Authority, decoded: "signing.crt", "signing.key",
// "next.crt", "next.key", "previous.crt", "bridge.crt"; "ca.crt" is the trust bundle, for people.
using SecretData = std::map<std::string, std::string>;

SecretData print_authority(const Authority& authority);

// nullopt: there is none yet. kCorruption: the data is not ours; it must not be overwritten.
Result<std::optional<Authority>> parse_authority(const SecretData& data);

// Advances the authority to `now`: starts and ends rotations. If `before` is nullopt, creates an
// authority. Creates keys. Returns an equal value when nothing is due. `name` begins the common
// name of each CA.
Result<Authority> advance_authority(
    const std::optional<Authority>& before,
    const std::string& name,
    const AuthorityTerms& terms,
    WallTime now);

// PEM of all CAs that a new sidecar must trust: signing, then next, then previous.
std::string trust_bundle(const Authority& authority);

// Issues a leaf of the signing CA for `dns_names`, followed by the bridge if there is one. The leaf
// never outlives its CA.
Result<KeyPair> issue_leaf(
    const Authority& authority,
    const std::vector<std::string>& dns_names,
    const AuthorityTerms& terms,
    WallTime now);

// Issues a leaf of the signing CA for the public key of `request` (PKCS#10, PEM) and these URIs,
// followed by the bridge if there is one; valid for TLS servers and clients. The caller decides
// the URIs: nothing but the key is taken from the request. Returns the chain. The leaf never
// outlives its CA. Errors: certify_peer().
Result<std::string> issue_peer_leaf(
    const Authority& authority,
    const std::string& request,
    const std::vector<std::string>& uris,
    const AuthorityTerms& terms,
    WallTime now);

// True if a third of the leaf's lifetime or less is left, or if it is not valid yet because the
// clock was ahead at its creation.
bool is_due(const Validity& leaf, WallTime now);

}  // namespace stoker::control
