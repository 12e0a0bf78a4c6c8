#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "operator/kube/client.h"
#include "operator/sidecars/answer_cache.h"
#include "operator/sidecars/authenticator.h"

namespace stoker::control {

// The pod that the token is bound to. kForbidden: it is not a pod's. Pure.
Result<PodIdentity> identify_pod(const TokenOwner& owner);

// Whether it could be a ServiceAccount token at all: three parts of base64url, at most 16 KiB.
// Keeps garbage away from the API server.
bool looks_like_token(std::string_view token);

// Asks the API server by TokenReview, through an AnswerCache: neither a restart of a thousand
// sidecars nor one with a bad token becomes a storm. Thread-safe.
class TokenReviewAuthenticator final : public Authenticator {
public:
    // ApiClient::review_token() for `kTokenAudience` (operator/core/workload/build_pod.h). Blocks.
    using Review = std::function<Result<TokenOwner>(const std::string& token)>;
    using Post = AnswerCache<PodIdentity>::Post;
    using Options = AnswerCacheOptions;

    // Whatever `post` runs its tasks on must be stopped before this is destroyed.
    TokenReviewAuthenticator(Review review, Post post, const Clock& clock, Options options);

    void authenticate(std::string token, Done done) override;

private:
    AnswerCache<PodIdentity> answers_;
};

}  // namespace stoker::control
