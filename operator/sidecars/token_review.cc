#include "operator/sidecars/token_review.h"

#include <array>
#include <utility>

#include <openssl/evp.h>

namespace stoker::control {

namespace {

constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
constexpr std::size_t kTokenBytesMax = 16 * 1024;

}  // namespace

std::string secret_digest(std::string_view secret) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_Digest(secret.data(), secret.size(), bytes.data(), &size, EVP_sha256(), nullptr);
    return {reinterpret_cast<const char*>(bytes.data()), size};
}

Result<PodIdentity> identify_pod(const TokenOwner& owner) {
    const std::string_view user = owner.username;
    const std::string_view rest = user.starts_with(kServiceAccountPrefix)
                                      ? user.substr(kServiceAccountPrefix.size())
                                      : std::string_view{};
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos || owner.pod_name.empty()) {
        return fail(ErrorCode::kForbidden, "the token is not bound to a pod");
    }
    PodIdentity identity;
    identity.namespace_name = rest.substr(0, colon);
    identity.service_account = rest.substr(colon + 1);
    identity.pod = owner.pod_name;
    identity.node = owner.node_name;
    return identity;
}

bool looks_like_token(std::string_view token) {
    const auto is_base64url = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    };
    int dots = 0;
    char before = '.';
    for (const char c : token) {
        if (c == '.' && before == '.') {
            return false;  // an empty part
        }
        if (c != '.' && !is_base64url(c)) {
            return false;
        }
        dots += c == '.' ? 1 : 0;
        before = c;
    }
    return dots == 2 && before != '.' && token.size() <= kTokenBytesMax;
}

TokenReviewAuthenticator::TokenReviewAuthenticator(
    Review review, Post post, const Clock& clock, Options options)
    : answers_(
          [review = std::move(review)](const std::string& token) -> Result<PodIdentity> {
              STOKER_TRY(const TokenOwner owner, review(token));
              return identify_pod(owner);
          },
          std::move(post),
          clock,
          options) {}

void TokenReviewAuthenticator::authenticate(std::string token, Done done) {
    if (!looks_like_token(token)) {
        done(fail(ErrorCode::kForbidden, "this is not a ServiceAccount token"));
        return;
    }
    answers_.ask(std::move(token), std::move(done));
}

}  // namespace stoker::control
