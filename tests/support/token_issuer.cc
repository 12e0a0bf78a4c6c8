#include "tests/support/token_issuer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "common/base/check.h"
#include "operator/kube/access.h"

namespace stoker::testing {

namespace {

constexpr std::size_t kP256Bytes = 32;

std::string bytes_of(const BIGNUM* number, std::size_t size) {
    std::string bytes(size, '\0');
    BN_bn2binpad(
        number, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    return bytes;
}

std::string number_of(EVP_PKEY* key, const char* name, std::size_t size = 0) {
    BIGNUM* number = nullptr;
    STOKER_CHECK(EVP_PKEY_get_bn_param(key, name, &number) == 1, "reading the key");
    const std::string bytes =
        bytes_of(number, size == 0 ? static_cast<std::size_t>(BN_num_bytes(number)) : size);
    BN_free(number);
    return base64url(bytes);
}

// The two numbers of a DER signature, as tokens carry them.
std::string raw_signature(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* pair = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    STOKER_CHECK(pair != nullptr, "reading a signature");
    std::string bytes = bytes_of(ECDSA_SIG_get0_r(pair), kP256Bytes);
    bytes += bytes_of(ECDSA_SIG_get0_s(pair), kP256Bytes);
    ECDSA_SIG_free(pair);
    return bytes;
}

}  // namespace

std::string base64url(const std::string& bytes) {
    std::string text = control::base64_encode(bytes);
    text.erase(std::find(text.begin(), text.end(), '='), text.end());
    std::replace(text.begin(), text.end(), '+', '-');
    std::replace(text.begin(), text.end(), '/', '_');
    return text;
}

std::string from_base64url(std::string text) {
    std::replace(text.begin(), text.end(), '-', '+');
    std::replace(text.begin(), text.end(), '_', '/');
    return control::base64_decode(text).value_or("");
}

TokenIssuer::TokenIssuer(std::string key_id, TokenKeyType type, unsigned bits)
    : key_id_(std::move(key_id)),
      type_(type),
      key_(
          type == TokenKeyType::kRsa ? EVP_RSA_gen(bits) : EVP_EC_gen("prime256v1"),
          EVP_PKEY_free) {
    STOKER_CHECK(key_ != nullptr, "making a key");
}

std::string TokenIssuer::sign_bytes(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
        EVP_MD_CTX_new(), EVP_MD_CTX_free);
    std::string signature(1024, '\0');
    std::size_t size = signature.size();
    const bool done =
        EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
        EVP_DigestSign(
            context.get(),
            reinterpret_cast<unsigned char*>(signature.data()),
            &size,
            reinterpret_cast<const unsigned char*>(text.data()),
            text.size()) == 1;
    STOKER_CHECK(done, "signing a token");
    signature.resize(size);
    return type_ == TokenKeyType::kRsa ? signature : raw_signature(signature);
}

std::string TokenIssuer::sign(const std::string& header, const std::string& claims) const {
    const std::string text = base64url(header) + "." + base64url(claims);
    return text + "." + base64url(sign_bytes(text));
}

std::string TokenIssuer::header() const {
    return fmt::format(
        R"({{"alg":"{}","kid":"{}"}})", type_ == TokenKeyType::kRsa ? "RS256" : "ES256", key_id_);
}

std::string TokenIssuer::claims(const TokenPod& pod, std::int64_t issued_at) {
    return fmt::format(
        R"({{"aud":["stoker.dev"],"exp":{},"iat":{},"iss":"{}","jti":"{}","kubernetes.io":{{"namespace":"{}",)"
        R"("node":{{"name":"{}","uid":"node-{}"}},"pod":{{"name":"{}","uid":"{}"}},)"
        R"("serviceaccount":{{"name":"default","uid":"sa-{}"}},"warnafter":{}}},"nbf":{},)"
        R"("sub":"system:serviceaccount:{}:default"}})",
        issued_at + 3600,
        issued_at,
        kIssuer,
        pod.uid,
        pod.ns,
        pod.node,
        pod.node,
        pod.pod,
        pod.uid,
        pod.ns,
        issued_at + 3000,
        issued_at,
        pod.ns);
}

std::string TokenIssuer::make(const TokenPod& pod, std::int64_t issued_at) const {
    return sign(header(), claims(pod, issued_at));
}

std::string TokenIssuer::key() const {
    if (type_ == TokenKeyType::kRsa) {
        return fmt::format(
            R"({{"use":"sig","kty":"RSA","kid":"{}","alg":"RS256","n":"{}","e":"{}"}})",
            key_id_,
            number_of(key_.get(), OSSL_PKEY_PARAM_RSA_N),
            number_of(key_.get(), OSSL_PKEY_PARAM_RSA_E));
    }
    return fmt::format(
        R"({{"use":"sig","kty":"EC","kid":"{}","crv":"P-256","alg":"ES256","x":"{}","y":"{}"}})",
        key_id_,
        number_of(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, kP256Bytes),
        number_of(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, kP256Bytes));
}

std::string TokenIssuer::key_set() const {
    return "{\"keys\":[" + key() + "]}";
}

std::string TokenIssuer::configuration() {
    return fmt::format(
        R"({{"issuer":"{}","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks",)"
        R"("response_types_supported":["id_token"],"subject_types_supported":["public"],)"
        R"("id_token_signing_alg_values_supported":["RS256"]}})",
        kIssuer);
}

std::string TokenIssuer::pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
    STOKER_CHECK(PEM_write_bio_PUBKEY(memory.get(), key_.get()) == 1, "writing a key");
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace stoker::testing
