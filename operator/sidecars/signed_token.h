#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/types.h>

#include "common/base/clock.h"
#include "common/base/result.h"

// ServiceAccount tokens as kube-apiserver signs them (RFC 7515, RFC 7519), and the public keys that
// it publishes for them (RFC 7517). Pure: no network and no clock. A header's own keys and
// addresses (jwk, jku, x5u, x5c) are never used, and no other algorithm than RS256 and ES256 exists
// here.
namespace stoker::control {

enum class TokenAlgorithm : std::uint8_t { kRs256, kEs256 };

// The claims of a token that is bound to a pod.
struct TokenClaims {
    std::string issuer;
    std::string subject;  // "system:serviceaccount:NAMESPACE:NAME"
    std::vector<std::string> audiences;
    WallTime not_before{};
    WallTime expires{};
    std::string ns;
    std::string service_account;
    std::string pod;
    std::string pod_uid;
    std::string node;  // empty before Kubernetes 1.30
};

// A token's parts, not verified.
struct SignedToken {
    TokenAlgorithm algorithm = TokenAlgorithm::kRs256;
    std::string key_id;
    std::string signed_text;  // what the signature covers
    std::string signature;    // bytes
    std::string claims;       // JSON; untrusted until the signature is verified
};

// kInvalidArgument: not a token of this form, or one that this parser does not support: another
// algorithm, no key id, critical extensions.
Result<SignedToken> parse_token(std::string_view text);

// kInvalidArgument: a claim is missing or has another type. Only for verified claims.
Result<TokenClaims> parse_claims(const std::string& json);

// One public key of the issuer.
class IssuerKey {
public:
    // Parses one entry of "keys". kInvalidArgument: not a signature key of RSA with at least 2048
    // bits or of P-256, or no key id.
    static Result<IssuerKey> parse(const std::string& json);

    [[nodiscard]] const std::string& id() const { return id_; }

    // Whether this key made the token's signature. False also if the token names another algorithm
    // than the key's.
    [[nodiscard]] bool verifies(const SignedToken& token) const;

private:
    IssuerKey() = default;

    std::string id_;
    TokenAlgorithm algorithm_ = TokenAlgorithm::kRs256;
    std::shared_ptr<EVP_PKEY> key_;
};

// The issuer and its keys.
struct IssuerKeys {
    std::string issuer;
    std::vector<IssuerKey> keys;

    // Null: no key, or several, have this id.
    [[nodiscard]] const IssuerKey* find(std::string_view id) const;
};

// Parses the pages /.well-known/openid-configuration and /openid/v1/jwks. Keys that cannot be used
// are left out. kInvalidArgument: a page has another format, or no usable key.
Result<IssuerKeys> parse_issuer_keys(const std::string& configuration, const std::string& key_set);

}  // namespace stoker::control
