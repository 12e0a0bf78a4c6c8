#include "operator/sidecars/signed_token.h"

#include <algorithm>
#include <array>
#include <utility>

#include <cpprest/json.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "operator/api/json.h"

namespace stoker::control {

namespace {

using web::json::value;

constexpr int kRsaBitsMin = 2048;
constexpr int kRsaBitsMax = 16'384;
constexpr std::size_t kP256Bytes = 32;  // of a coordinate, and of each half of a signature
constexpr std::size_t kKeysMax = 64;

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};

template <class T, auto Free>
using Owned = std::unique_ptr<T, Deleter<Free>>;

using Number = Owned<BIGNUM, BN_free>;

int digit_of(char c) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const std::size_t digit = kAlphabet.find(c);
    return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
}

// Base64url without padding; nullopt: another character, or bits left over.
std::optional<std::string> decode(std::string_view text) {
    std::string bytes;
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        const int digit = digit_of(c);
        if (digit < 0) {
            return std::nullopt;
        }
        bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes += static_cast<char>((bits >> count) & 0xFFU);
            bits &= (1U << count) - 1;
        }
    }
    return count >= 6 || bits != 0 ? std::nullopt : std::optional(bytes);
}

std::optional<value> parse_object(const std::string& text) {
    std::error_code error;
    value document = value::parse(text, error);
    return error || !document.is_object() ? std::nullopt : std::optional(std::move(document));
}

Error invalid(std::string_view what) {
    return {ErrorCode::kInvalidArgument, std::string(what)};
}

std::optional<TokenAlgorithm> algorithm_of(const std::string& name) {
    if (name == "RS256") {
        return TokenAlgorithm::kRs256;
    }
    return name == "ES256" ? std::optional(TokenAlgorithm::kEs256) : std::nullopt;
}

std::optional<WallTime> time_at(const value& claims, std::string_view name) {
    const value* found = find_at(claims, {name});
    constexpr std::int64_t kSecondsMax = 9'000'000'000;  // the year 2255; WallTime ends in 2262
    if (found == nullptr || !found->is_number() || !found->as_number().is_int64()) {
        return std::nullopt;
    }
    const std::int64_t seconds = found->as_number().to_int64();
    const bool possible = seconds >= 0 && seconds <= kSecondsMax;
    return possible ? std::optional(WallTime{std::chrono::seconds{seconds}}) : std::nullopt;
}

// "aud" is one text or a list of texts.
std::optional<std::vector<std::string>> audiences_of(const value& claims) {
    const value* found = find_at(claims, {"aud"});
    if (found != nullptr && found->is_string()) {
        return std::vector<std::string>{found->as_string()};
    }
    if (found == nullptr || !found->is_array()) {
        return std::nullopt;
    }
    std::vector<std::string> audiences;
    for (const value& audience : found->as_array()) {
        if (!audience.is_string()) {
            return std::nullopt;
        }
        audiences.push_back(audience.as_string());
    }
    return audiences;
}

Number number_at(const value& key, std::string_view name) {
    const auto bytes = decode(string_at(key, {name}));
    return bytes && !bytes->empty() ? Number(BN_bin2bn(
                                          reinterpret_cast<const unsigned char*>(bytes->data()),
                                          static_cast<int>(bytes->size()),
                                          nullptr))
                                    : nullptr;
}

// Null: the parameters are not a public key of this type.
std::shared_ptr<EVP_PKEY> public_key(const char* type, OSSL_PARAM_BLD* builder) {
    const Owned<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(builder));
    const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(
        EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
    EVP_PKEY* key = nullptr;
    if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
        return nullptr;
    }
    std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
    const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> check(
        EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
    return check && EVP_PKEY_public_check(check.get()) == 1 ? owned : nullptr;
}

std::shared_ptr<EVP_PKEY> rsa_key(const value& json) {
    const Number modulus = number_at(json, "n");
    const Number exponent = number_at(json, "e");
    const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> builder(OSSL_PARAM_BLD_new());
    if (!modulus || !exponent || BN_num_bits(modulus.get()) < kRsaBitsMin ||
        BN_num_bits(modulus.get()) > kRsaBitsMax || BN_num_bits(exponent.get()) > 64 ||
        BN_is_one(exponent.get()) == 1 || BN_is_odd(exponent.get()) != 1 || !builder ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
        return nullptr;
    }
    return public_key("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> p256_key(const value& json) {
    const auto x = decode(string_at(json, {"x"}));
    const auto y = decode(string_at(json, {"y"}));
    if (string_at(json, {"crv"}) != "P-256" || !x || !y || x->size() != kP256Bytes ||
        y->size() != kP256Bytes) {
        return nullptr;
    }
    const std::string point = "\x04" + *x + *y;  // uncompressed
    const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> builder(OSSL_PARAM_BLD_new());
    if (!builder ||
        OSSL_PARAM_BLD_push_utf8_string(
            builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(
            builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
        return nullptr;
    }
    return public_key("EC", builder.get());
}

// OpenSSL reads ECDSA signatures as DER; tokens carry the two numbers. Empty: not such a signature.
std::string der_of(const std::string& signature) {
    if (signature.size() != 2 * kP256Bytes) {
        return {};
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
    const Owned<ECDSA_SIG, ECDSA_SIG_free> pair(ECDSA_SIG_new());
    Number r(BN_bin2bn(bytes, kP256Bytes, nullptr));
    Number s(BN_bin2bn(bytes + kP256Bytes, kP256Bytes, nullptr));
    if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1) {
        return {};
    }
    static_cast<void>(r.release());
    static_cast<void>(s.release());
    std::array<unsigned char, 80> der{};
    unsigned char* end = der.data();
    const int size = i2d_ECDSA_SIG(pair.get(), &end);
    return size <= 0
               ? std::string()
               : std::string(
                     reinterpret_cast<const char*>(der.data()), static_cast<std::size_t>(size));
}

}  // namespace

Result<SignedToken> parse_token(std::string_view text) {
    const std::size_t first = text.find('.');
    const std::size_t second = first == std::string_view::npos ? first : text.find('.', first + 1);
    if (second == std::string_view::npos || text.find('.', second + 1) != std::string_view::npos) {
        return fail(invalid("a token has three parts"));
    }
    const auto head_text = decode(text.substr(0, first));
    auto claims = decode(text.substr(first + 1, second - first - 1));
    auto signature = decode(text.substr(second + 1));
    const auto head = head_text ? parse_object(*head_text) : std::nullopt;
    if (!head || !claims || !signature) {
        return fail(invalid("a part of the token is not base64url, or its header is not JSON"));
    }
    const auto algorithm = algorithm_of(string_at(*head, {"alg"}));
    const std::string key_id = string_at(*head, {"kid"});
    if (!algorithm || key_id.empty() || find_at(*head, {"crit"}) != nullptr) {
        return fail(invalid(
            "the token's header has an unknown algorithm, no key id, or critical extensions"));
    }
    return SignedToken{
        *algorithm,
        key_id,
        std::string(text.substr(0, second)),
        *std::move(signature),
        *std::move(claims)};
}

Result<TokenClaims> parse_claims(const std::string& json) {
    const auto document = parse_object(json);
    if (!document) {
        return fail(invalid("the claims are not JSON"));
    }
    const auto bound = [&](std::string_view kind, std::string_view field) {
        return string_at(*document, {"kubernetes.io", kind, field});
    };
    const auto audiences = audiences_of(*document);
    const auto not_before = time_at(*document, "nbf");
    const auto expires = time_at(*document, "exp");
    if (!audiences || !not_before || !expires) {
        return fail(invalid("aud, nbf or exp is missing"));
    }
    TokenClaims claims;
    claims.issuer = string_at(*document, {"iss"});
    claims.subject = string_at(*document, {"sub"});
    claims.audiences = *audiences;
    claims.not_before = *not_before;
    claims.expires = *expires;
    claims.ns = string_at(*document, {"kubernetes.io", "namespace"});
    claims.service_account = bound("serviceaccount", "name");
    claims.pod = bound("pod", "name");
    claims.pod_uid = bound("pod", "uid");
    claims.node = bound("node", "name");
    if (claims.issuer.empty() || claims.ns.empty() || claims.service_account.empty() ||
        claims.pod.empty() || claims.pod_uid.empty() ||
        claims.subject != "system:serviceaccount:" + claims.ns + ":" + claims.service_account) {
        return fail(invalid("not the claims of a pod's ServiceAccount token"));
    }
    return claims;
}

Result<IssuerKey> IssuerKey::parse(const std::string& json) {
    const auto document = parse_object(json);
    IssuerKey key;
    if (!document) {
        return fail(invalid("not a key"));
    }
    const std::string type = string_at(*document, {"kty"});
    const std::string use = string_at(*document, {"use"});
    const std::string named = string_at(*document, {"alg"});
    key.id_ = string_at(*document, {"kid"});
    key.algorithm_ = type == "EC" ? TokenAlgorithm::kEs256 : TokenAlgorithm::kRs256;
    if (key.id_.empty() || (!use.empty() && use != "sig") ||
        (!named.empty() && algorithm_of(named) != key.algorithm_)) {
        return fail(invalid("not a key for RS256 or ES256"));
    }
    key.key_ = type == "RSA" ? rsa_key(*document) : type == "EC" ? p256_key(*document) : nullptr;
    if (!key.key_) {
        return fail(invalid("not a public key of RSA with 2048 bits or more, or of P-256"));
    }
    return key;
}

bool IssuerKey::verifies(const SignedToken& token) const {
    if (token.algorithm != algorithm_) {
        return false;
    }
    const std::string signature =
        algorithm_ == TokenAlgorithm::kEs256 ? der_of(token.signature) : token.signature;
    const Owned<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
    // RSA's default padding is PKCS#1 v1.5, RS256's.
    return !signature.empty() && context &&
           EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
           EVP_DigestVerify(
               context.get(),
               reinterpret_cast<const unsigned char*>(signature.data()),
               signature.size(),
               reinterpret_cast<const unsigned char*>(token.signed_text.data()),
               token.signed_text.size()) == 1;
}

const IssuerKey* IssuerKeys::find(std::string_view id) const {
    const auto named = [id](const IssuerKey& key) { return key.id() == id; };
    const auto found = std::find_if(keys.begin(), keys.end(), named);
    const bool single = std::count_if(keys.begin(), keys.end(), named) == 1;
    return single ? &*found : nullptr;
}

Result<IssuerKeys> parse_issuer_keys(const std::string& configuration, const std::string& key_set) {
    const auto page = parse_object(configuration);
    const auto set = parse_object(key_set);
    const value* keys = set ? find_at(*set, {"keys"}) : nullptr;
    IssuerKeys result;
    result.issuer = page ? string_at(*page, {"issuer"}) : "";
    if (result.issuer.empty() || keys == nullptr || !keys->is_array() ||
        keys->as_array().size() > kKeysMax) {
        return fail(invalid("the issuer's pages lack the issuer or the keys"));
    }
    for (const value& entry : keys->as_array()) {
        if (auto key = IssuerKey::parse(entry.serialize())) {
            result.keys.push_back(*std::move(key));
        }
    }
    if (result.keys.empty()) {
        return fail(invalid("the issuer has no key that can be used"));
    }
    return result;
}

}  // namespace stoker::control
