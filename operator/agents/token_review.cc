#include "operator/agents/token_review.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace stoker::control {

namespace {

constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
constexpr std::size_t kTokenBytesMax = 16 * 1024;

std::string digest_of(std::string_view token) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_Digest(token.data(), token.size(), bytes.data(), &size, EVP_sha256(), nullptr);
    return {reinterpret_cast<const char*>(bytes.data()), size};
}

}  // namespace

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
    : review_(std::move(review)),
      post_(std::move(post)),
      clock_(clock),
      options_(options) {}

void TokenReviewAuthenticator::authenticate(std::string token, Done done) {
    if (!looks_like_token(token)) {
        done(fail(ErrorCode::kForbidden, "this is no ServiceAccount token"));
        return;
    }
    const std::string digest = digest_of(token);
    std::optional<Result<PodIdentity>> known;
    bool first = false;
    {
        auto state = state_.lock();
        const auto answer = state->answers.find(digest);
        if (answer != state->answers.end() && clock_.now() < answer->second.until) {
            known = answer->second.identity;
        } else if (state->waiting_count >= options_.waiting_max) {
            known = fail(ErrorCode::kResourceExhausted, "too many tokens are being checked");
        } else {
            std::vector<Done>& waiting = state->waiting[digest];
            first = waiting.empty();
            waiting.push_back(std::move(done));
            ++state->waiting_count;
        }
    }
    if (known) {
        done(*std::move(known));
    } else if (first) {
        post_([this, token = std::move(token), digest] { ask(token, digest); });
    }
}

void TokenReviewAuthenticator::ask(const std::string& token, const std::string& digest) {
    const Result<TokenOwner> owner = review_(token);
    const Result<PodIdentity> identity =
        owner ? identify_pod(*owner) : Result<PodIdentity>(fail(owner.error()));
    // Silence says nothing about the token.
    const bool answered = identity || identity.error().code == ErrorCode::kForbidden;
    std::vector<Done> waiting;
    {
        auto state = state_.lock();
        const auto entry = state->waiting.find(digest);
        waiting = std::move(entry->second);
        state->waiting.erase(entry);
        state->waiting_count -= waiting.size();
        if (answered) {
            remember(*state, digest, identity);
        }
    }
    for (const Done& done : waiting) {
        done(identity);
    }
}

void TokenReviewAuthenticator::remember(
    State& state, const std::string& digest, const Result<PodIdentity>& identity) const {
    const TimePoint now = clock_.now();
    if (state.answers.size() >= options_.answer_count_max) {
        std::erase_if(state.answers, [&](const auto& entry) { return entry.second.until <= now; });
    }
    if (state.answers.size() >= options_.answer_count_max) {
        state.answers.clear();  // all still fresh: a storm; asking anew is right, if slow
    }
    const Duration keep = identity ? options_.keep_accepted : options_.keep_refused;
    state.answers.insert_or_assign(digest, Answer{identity, now + keep});
}

}  // namespace stoker::control
