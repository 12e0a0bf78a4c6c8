#include "operator/sidecars/local_authenticator.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "operator/kube/pause.h"
#include "operator/sidecars/token_review.h"

namespace stoker::control {

LocalAuthenticator::LocalAuthenticator(
    Options options,
    FindPod find_pod,
    ReadPage read_page,
    Authenticator& fallback,
    const Clock& clock)
    : options_(std::move(options)),
      find_pod_(std::move(find_pod)),
      read_page_(std::move(read_page)),
      fallback_(fallback),
      clock_(clock) {}

void LocalAuthenticator::authenticate(std::string token, Done done) {
    auto decided = looks_like_token(token) ? decide(token) : std::nullopt;
    {
        auto counts = counts_.lock();
        (!decided   ? counts->reviewed
         : *decided ? counts->accepted_locally
                    : counts->refused_locally) += 1;
    }
    if (decided) {
        done(*std::move(decided));
    } else {
        fallback_.authenticate(std::move(token), std::move(done));
    }
}

std::optional<Result<PodIdentity>> LocalAuthenticator::decide(const std::string& token) {
    const Keys keys = *keys_.lock();
    if (!keys) {
        return std::nullopt;
    }
    const auto parsed = parse_token(token);
    const IssuerKey* key = parsed ? keys->find(parsed->key_id) : nullptr;
    if (key == nullptr) {
        return std::nullopt;
    }
    if (!key->verifies(*parsed)) {
        return fail(ErrorCode::kForbidden, "the token's signature is wrong");
    }
    const auto claims = parse_claims(parsed->claims);
    return claims ? decide(*claims, *keys) : std::nullopt;
}

std::optional<Result<PodIdentity>> LocalAuthenticator::decide(
    const TokenClaims& claims, const IssuerKeys& keys) {
    if (claims.issuer != keys.issuer) {
        return std::nullopt;
    }
    if (std::ranges::find(claims.audiences, options_.audience) == claims.audiences.end()) {
        return fail(ErrorCode::kForbidden, "the token was made for another audience");
    }
    // A token outside of its time goes to the API server, whose clock decides: ours may be wrong.
    const WallTime now = clock_.wall_now();
    const bool is_current = claims.not_before <= now && now < claims.expires;
    const std::optional<std::string> uid = find_pod_({claims.ns, claims.pod});
    if (!is_current || uid != claims.pod_uid) {
        return std::nullopt;
    }
    return PodIdentity{claims.ns, claims.service_account, claims.pod, claims.node};
}

Result<IssuerKeys> LocalAuthenticator::read_keys() {
    STOKER_TRY(const std::string configuration, read_page_("/.well-known/openid-configuration"));
    // Reads the keys from our API server, not from the jwks_uri of its OpenID configuration: that
    // address may be outside of the cluster.
    STOKER_TRY(const std::string key_set, read_page_("/openid/v1/jwks"));
    return parse_issuer_keys(configuration, key_set);
}

void LocalAuthenticator::refresh() {
    Result<IssuerKeys> keys = read_keys();
    const bool had = *keys_.lock() != nullptr;
    if (keys) {
        read_at_ = clock_.now();
        *keys_.lock() = std::make_shared<const IssuerKeys>(*std::move(keys));
    } else if (had && clock_.now() - read_at_ >= options_.keep) {
        keys_.lock()->reset();
    }
    const bool has = *keys_.lock() != nullptr;
    if (!told_ || had != has) {
        told_ = true;
        log::info(
            has ? "tokens are verified with the API server's keys"
                : "tokens are reviewed by the API server: its keys cannot be read",
            {{"error", keys ? std::string() : keys.error().message}});
    }
}

void LocalAuthenticator::run(const std::stop_token& stop) {
    do {
        refresh();
    } while (pause_until(clock_, clock_.now() + options_.refresh, stop));
}

}  // namespace stoker::control
