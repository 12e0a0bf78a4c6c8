#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/agents/authenticator.h"
#include "operator/kube/client.h"

namespace stoker::control {

// The pod that the token is bound to. kForbidden: it is not a pod's. Pure.
Result<PodIdentity> identify_pod(const TokenOwner& owner);

// Whether it could be a ServiceAccount token at all: three parts of base64url, at most 16 KiB.
// Keeps garbage away from the API server.
bool looks_like_token(std::string_view token);

// Asks the API server by TokenReview and remembers the answer: a minute when it is yes, ten seconds
// when it is no, so that neither a restart of a thousand sidecars nor one with a bad token becomes
// a storm. Questions for one token at a time are one question. Tokens are kept as SHA-256 digests
// only. Thread-safe.
class TokenReviewAuthenticator final : public Authenticator {
public:
    // ApiClient::review_token() for `kTokenAudience` (operator/core/build_pod.h). Blocks.
    using Review = std::function<Result<TokenOwner>(const std::string& token)>;
    // Runs a task that blocks, elsewhere and soon.
    using Post = std::function<void(std::function<void()> task)>;

    struct Options {
        Duration keep_accepted = std::chrono::minutes{1};
        Duration keep_refused = std::chrono::seconds{10};
        std::size_t answer_count_max = 4096;
        std::size_t waiting_max =
            256;  // callers whose question is under way; more get kResourceExhausted
    };

    // Whatever `post` runs its tasks on must be stopped before this is destroyed.
    TokenReviewAuthenticator(Review review, Post post, const Clock& clock, Options options);

    void authenticate(std::string token, Done done) override;

private:
    struct Answer {
        Result<PodIdentity> identity;
        TimePoint until{};
    };

    struct State {
        std::map<std::string, Answer> answers;             // by digest
        std::map<std::string, std::vector<Done>> waiting;  // by digest
        std::size_t waiting_count = 0;
    };

    void ask(const std::string& token, const std::string& digest);
    void remember(
        State& state, const std::string& digest, const Result<PodIdentity>& identity) const;

    Review review_;
    Post post_;
    const Clock& clock_;
    Options options_;
    Guarded<State> state_;
};

}  // namespace stoker::control
