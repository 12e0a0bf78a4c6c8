#include "bench/scale/token_maker.h"

#include <algorithm>
#include <ctime>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/rsa.h>

#include "common/base/check.h"
#include "operator/api/json.h"
#include "operator/kube/access.h"

namespace stoker::bench {

namespace {

constexpr const char* kIssuer = "https://kubernetes.default.svc.cluster.local";
constexpr const char* kKeyId = "scale-1";

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
    text.append((4 - text.size() % 4) % 4, '=');
    return control::base64_decode(text).value_or("");
}

std::string sign(EVP_PKEY* key, const std::string& text) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
        EVP_MD_CTX_new(), EVP_MD_CTX_free);
    std::string signature(512, '\0');
    std::size_t size = signature.size();
    const bool signed_well =
        EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
        EVP_DigestSign(
            context.get(),
            reinterpret_cast<unsigned char*>(signature.data()),
            &size,
            reinterpret_cast<const unsigned char*>(text.data()),
            text.size()) == 1;
    STOKER_CHECK(signed_well, "signing a token");
    signature.resize(size);
    return signature;
}

std::string number_of(EVP_PKEY* key, const char* name) {
    BIGNUM* number = nullptr;
    STOKER_CHECK(EVP_PKEY_get_bn_param(key, name, &number) == 1, "reading the key");
    std::string bytes(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
    BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
    BN_free(number);
    return base64url(bytes);
}

}  // namespace

TokenMaker::TokenMaker()
    : key_(EVP_RSA_gen(2048)) {}

std::string TokenMaker::make(const TokenPod& pod) const {
    const std::time_t now = std::time(nullptr);
    const std::string claims = fmt::format(
        R"({{"aud":["stoker.dev"],"exp":{},"iat":{},"iss":"{}","jti":"{}","kubernetes.io":{{"namespace":"{}",)"
        R"("node":{{"name":"{}","uid":"node-{}"}},"pod":{{"name":"{}","uid":"{}"}},)"
        R"("serviceaccount":{{"name":"default","uid":"sa-{}"}}}},"nbf":{},"sub":"system:serviceaccount:{}:default"}})",
        now + 3600, now, kIssuer, pod.uid, pod.ns, pod.node, pod.node, pod.pod, pod.uid, pod.ns,
        now, pod.ns);
    const std::string head = fmt::format(R"({{"alg":"RS256","kid":"{}"}})", kKeyId);
    const std::string text = base64url(head) + "." + base64url(claims);
    return text + "." + base64url(sign(key_.get(), text));
}

std::string TokenMaker::review(const std::string& token) const {
    const std::size_t first = token.find('.');
    const std::size_t second = token.find('.', first + 1);
    const auto claims = web::json::value::parse(
        from_base64url(token.substr(first + 1, second - first - 1)));
    const auto at = [&](const char* what, const char* field) {
        return control::string_at(claims, {"kubernetes.io", what, field});
    };
    return fmt::format(
        R"({{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{{}},"status":{{)"
        R"("authenticated":true,"audiences":["stoker.dev"],"user":{{"username":"{}","uid":"{}",)"
        R"("groups":["system:serviceaccounts","system:authenticated"],"extra":{{)"
        R"("authentication.kubernetes.io/pod-name":["{}"],"authentication.kubernetes.io/pod-uid":["{}"],)"
        R"("authentication.kubernetes.io/node-name":["{}"]}}}}}}}})",
        control::string_at(claims, {"sub"}), at("serviceaccount", "uid"), at("pod", "name"),
        at("pod", "uid"), at("node", "name"));
}

std::string TokenMaker::discovery(const std::string& path) const {
    if (path == "/.well-known/openid-configuration") {
        return fmt::format(
            R"({{"issuer":"{}","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks",)"
            R"("response_types_supported":["id_token"],"subject_types_supported":["public"],)"
            R"("id_token_signing_alg_values_supported":["RS256"]}})",
            kIssuer);
    }
    if (path == "/openid/v1/jwks") {
        return fmt::format(
            R"({{"keys":[{{"use":"sig","kty":"RSA","kid":"{}","alg":"RS256","n":"{}","e":"{}"}}]}})",
            kKeyId, number_of(key_.get(), OSSL_PKEY_PARAM_RSA_N),
            number_of(key_.get(), OSSL_PKEY_PARAM_RSA_E));
    }
    return "";
}

}  // namespace stoker::bench
