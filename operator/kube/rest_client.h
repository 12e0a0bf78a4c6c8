#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/token_bucket.h"
#include "operator/kube/client.h"
#include "operator/kube/transport.h"

namespace stoker::control {

struct RetryLimits {
    std::uint32_t tries = 10;                  // the first one included
    Duration pause = std::chrono::seconds{1};  // before a GET on a broken connection is repeated
    Duration longest_wait = std::chrono::seconds{30};  // upper limit for Retry-After
};

// The wait before a request is repeated, or nullopt if its outcome is final. A 429 or 5xx with
// Retry-After is repeated for any verb, because the server states that it did nothing. Without a
// response the request may have been executed, so only GET is repeated. `tries_made` includes the
// try that just ended. Pure.
std::optional<Duration> retry_after(
    Verb verb,
    const Result<ApiResponse>& outcome,
    std::uint32_t tries_made,
    const RetryLimits& limits);

struct RestClientOptions {
    std::string field_manager;  // "stoker-operator"; owner of the fields that we apply
    Duration time_limit = std::chrono::seconds{30};  // of one try
    RetryLimits retry{};
    // Protects the API server from our own bugs; its fairness rules do the real limiting.
    double requests_per_second = 50;
    double request_burst = 100;
};

// ApiClient over a transport: adds retries, the rate limit, the leader's fence, and logs the
// server's warnings (each text once). `transport` and `clock` must outlive it.
class RestClient final : public ApiClient {
public:
    // Called before each try of a write; false ends it with kCancelled. Empty: always true.
    using MayWrite = std::function<bool()>;

    RestClient(
        ApiTransport& transport,
        RestClientOptions options,
        const Clock& clock,
        std::stop_token stop,
        MayWrite may_write = {});

    Result<Object> get(const ResourceKind& kind, const ObjectKey& key) override;
    Result<std::vector<Object>> list(const ResourceKind& kind, const Scope& scope) override;
    Result<Object> create(
        const ResourceKind& kind, const std::string& ns, const Json& body) override;
    Result<Object> replace(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) override;
    Result<Object> apply(const ResourceKind& kind, const ObjectKey& key, const Json& body) override;
    Result<Object> apply_status(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) override;
    Result<Object> apply_status_as(
        const std::string& field_manager,
        const ResourceKind& kind,
        const ObjectKey& key,
        const Json& body) override;
    Result<Object> patch(
        const ResourceKind& kind, const ObjectKey& key, const Json& body, PatchType type) override;
    Status remove(
        const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) override;
    Result<TokenOwner> review_token(
        std::string_view token, const std::vector<std::string>& audiences) override;
    Status review_access(
        const TokenOwner& user, std::string_view verb, std::string_view path) override;

    // The body of a page that is not a resource, such as "/openid/v1/jwks".
    Result<std::string> get_page(const std::string& path);

private:
    Result<ApiResponse> send(const ApiRequest& request);
    Result<Object> send_for_object(const ApiRequest& request);
    Result<Json> send_for_review(const ApiRequest& request);
    Status may_send(const ApiRequest& request);
    Status pause(Duration wait);
    void log_warnings(const ApiResponse& response);

    ApiTransport* transport_;
    RestClientOptions options_;
    const Clock* clock_;
    std::stop_token stop_;
    MayWrite may_write_;
    Guarded<TokenBucket> guard_;
    Guarded<std::set<std::string>> warned_;
};

}  // namespace stoker::control
