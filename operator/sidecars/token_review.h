#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "operator/kube/client.h"
#include "operator/sidecars/answer_cache.h"
#include "operator/sidecars/authenticator.h"

namespace stoker::control {

// The pod that the token is bound to. kForbidden: not a pod's token. Pure.
Result<PodIdentity> identify_pod(const TokenOwner& owner);

// True if the text has the form of a ServiceAccount token: three parts of base64url, at most 16
// KiB. Keeps garbage away from the API server.
bool looks_like_token(std::string_view token);

// Sends TokenReviews through an AnswerCache: neither a restart of a thousand sidecars nor repeated
// bad tokens flood the API server. Thread-safe.
class TokenReviewAuthenticator final : public Authenticator {
public:
    // Calls ApiClient::review_token() for `kTokenAudience` (operator/core/workload/build_pod.h).
    // Blocks.
    using Review = std::function<Result<TokenOwner>(const std::string& token)>;
    using Post = AnswerCache<PodIdentity>::Post;
    using Options = AnswerCacheOptions;

    // Stop the executor behind `post` before this is destroyed.
    TokenReviewAuthenticator(Review review, Post post, const Clock& clock, Options options);

    void authenticate(std::string token, Done done) override;

private:
    AnswerCache<PodIdentity> answers_;
};

}  // namespace stoker::control
