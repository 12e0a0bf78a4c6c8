#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "operator/api/meta.h"
#include "operator/kube/client.h"
#include "operator/sidecars/authenticator.h"
#include "operator/sidecars/signed_token.h"

namespace stoker::control {

// How tokens were checked; totals.
struct TokenCounts {
    std::uint64_t accepted_locally = 0;
    std::uint64_t refused_locally = 0;
    std::uint64_t reviewed = 0;  // passed on to the API server
};

// Verifies ServiceAccount tokens with the API server's public keys, without a request, and passes a
// token on to `fallback` (TokenReviews) whenever it cannot decide: docs/adr/0021-local-tokens.md.
//
// It accepts only what a TokenReview would accept: signature, issuer, audience, lifetime, and a pod
// that our cache has under this uid and that is not being deleted. It refuses only if the signature
// of a known key is wrong, or a signed token is for another audience. Everything else
// is passed on.
//
// Thread-safe. authenticate() never blocks longer than `fallback`.
class LocalAuthenticator final : public Authenticator {
public:
    // The uid of that pod in our cache; nullopt: it has no such pod, or the pod is being deleted.
    using FindPod = std::function<std::optional<std::string>(const ObjectKey& pod)>;

    // Reads a page of the API server, such as "/openid/v1/jwks". Blocks.
    using ReadPage = std::function<Result<std::string>(const std::string& path)>;

    struct Options {
        std::string audience;
        Duration refresh = std::chrono::seconds{60};
        // Keys that could not be read again for so long are dropped.
        Duration keep = std::chrono::minutes{5};
    };

    // `fallback` and `clock` must outlive it.
    LocalAuthenticator(
        Options options,
        FindPod find_pod,
        ReadPage read_page,
        Authenticator& fallback,
        const Clock& clock);

    void authenticate(std::string token, Done done) override;

    // Reads the keys again and again until a stop is requested.
    void run(const std::stop_token& stop);

    // Reads the keys once.
    void refresh();

    [[nodiscard]] TokenCounts counts() { return *counts_.lock(); }

private:
    using Keys = std::shared_ptr<const IssuerKeys>;

    // nullopt: cannot be decided here.
    std::optional<Result<PodIdentity>> decide(const std::string& token);
    std::optional<Result<PodIdentity>> decide(const TokenClaims& claims, const IssuerKeys& keys);
    Result<IssuerKeys> read_keys();

    Options options_;
    FindPod find_pod_;
    ReadPage read_page_;
    Authenticator& fallback_;
    const Clock& clock_;
    Guarded<Keys> keys_;  // null: none
    Guarded<TokenCounts> counts_;
    TimePoint read_at_{};  // only used by refresh()
    bool told_ = false;    // only used by refresh(): the log has the last outcome
};

}  // namespace stoker::control
