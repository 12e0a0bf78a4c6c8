#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <openssl/types.h>

namespace stoker::testing {

// The pod that a token is bound to.
struct TokenPod {
    std::string ns;
    std::string pod;
    std::string uid;
    std::string node;
};

enum class TokenKeyType : std::uint8_t { kRsa, kP256 };

// Issues ServiceAccount tokens as kube-apiserver does, and publishes its key. Thread-safe.
class TokenIssuer {
public:
    static constexpr const char* kIssuer = "https://kubernetes.default.svc.cluster.local";

    explicit TokenIssuer(
        std::string key_id = "key-1", TokenKeyType type = TokenKeyType::kRsa, unsigned bits = 2048);

    // A token of audience "stoker.dev" for the account "default", valid for an hour from
    // `issued_at` (Unix seconds).
    [[nodiscard]] std::string make(const TokenPod& pod, std::int64_t issued_at) const;

    // A token with any header and claims (JSON), signed by this key.
    [[nodiscard]] std::string sign(const std::string& header, const std::string& claims) const;

    [[nodiscard]] std::string header() const;
    static std::string claims(const TokenPod& pod, std::int64_t issued_at);

    // The key as an entry of a JSON Web Key Set; and the API server's answers at /openid/v1/jwks
    // and /.well-known/openid-configuration.
    [[nodiscard]] std::string key() const;
    [[nodiscard]] std::string key_set() const;
    static std::string configuration();

    [[nodiscard]] const std::string& key_id() const { return key_id_; }

    // The public key as PEM.
    [[nodiscard]] std::string pem() const;

private:
    [[nodiscard]] std::string sign_bytes(const std::string& text) const;

    std::string key_id_;
    TokenKeyType type_;
    std::shared_ptr<EVP_PKEY> key_;
};

// Base64url without padding.
std::string base64url(const std::string& bytes);
std::string from_base64url(std::string text);

}  // namespace stoker::testing
