#include "operator/kube/rest_client.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/kube/list_page.h"
#include "operator/kube/pause.h"
#include "operator/kube/status_error.h"

namespace stoker::control {

namespace {

constexpr std::uint32_t kPageSize = 500;
constexpr std::size_t kWarningsMax = 1000;

std::string first_text(const web::json::value& user, std::string_view extra) {
    const auto* list = find_at(user, {"extra", extra});
    const bool has_one = list != nullptr && list->is_array() && list->size() > 0;
    return has_one && list->at(0).is_string() ? list->at(0).as_string() : std::string();
}

// Whether the review names one of our audiences. The list is empty if the server does not support
// audiences, or accepted the token for an audience of its own.
bool names_one_of(const web::json::value& review, const std::vector<std::string>& audiences) {
    const auto* named = find_at(review, {"status", "audiences"});
    if (named == nullptr || !named->is_array()) {
        return audiences.empty();
    }
    const auto& list = named->as_array();
    return std::any_of(list.begin(), list.end(), [&](const web::json::value& audience) {
        return audience.is_string() &&
               std::find(audiences.begin(), audiences.end(), audience.as_string()) !=
                   audiences.end();
    });
}

TokenOwner read_owner(const web::json::value& user) {
    TokenOwner owner;
    owner.username = string_at(user, {"username"});
    owner.uid = string_at(user, {"uid"});
    owner.pod_name = first_text(user, "authentication.kubernetes.io/pod-name");
    owner.pod_uid = first_text(user, "authentication.kubernetes.io/pod-uid");
    owner.node_name = first_text(user, "authentication.kubernetes.io/node-name");
    if (const auto* groups = find_at(user, {"groups"}); groups != nullptr && groups->is_array()) {
        for (const auto& group : groups->as_array()) {
            if (group.is_string()) {
                owner.groups.push_back(group.as_string());
            }
        }
    }
    return owner;
}

bool is_success(const ApiResponse& response) {
    return response.status >= 200 && response.status <= 299;
}

Error refusal_of(const ApiRequest& request, const ApiResponse& response) {
    return read_failure(response.status, response.body, response.retry_after)
        .error()
        .prefixed(request.what);
}

bool is_true_at(const web::json::value& review, JsonPath path) {
    const auto* found = find_at(review, path);
    return found != nullptr && found->is_boolean() && found->as_bool();
}

}  // namespace

std::optional<Duration> retry_after(
    Verb verb,
    const Result<ApiResponse>& outcome,
    std::uint32_t tries_made,
    const RetryLimits& limits) {
    if (tries_made >= limits.tries) {
        return std::nullopt;
    }
    if (!outcome) {
        const bool broken = outcome.error().code == ErrorCode::kUnavailable;
        return broken && verb == Verb::kGet ? std::optional(limits.pause) : std::nullopt;
    }
    if ((outcome->status != 429 && outcome->status < 500) || outcome->retry_after.empty()) {
        return std::nullopt;
    }
    const auto failure = read_failure(outcome->status, {}, outcome->retry_after);
    if (!failure.retry_after) {
        return std::nullopt;
    }
    return std::min(*failure.retry_after, limits.longest_wait);
}

RestClient::RestClient(
    ApiTransport& transport,
    RestClientOptions options,
    const Clock& clock,
    std::stop_token stop,
    MayWrite may_write)
    : transport_(&transport),
      options_(std::move(options)),
      clock_(&clock),
      stop_(std::move(stop)),
      may_write_(std::move(may_write)),
      guard_(options_.requests_per_second, options_.request_burst) {}

Status RestClient::pause(Duration wait) {
    if (!pause_until(*clock_, clock_->now() + wait, stop_)) {
        return fail(ErrorCode::kCancelled, "stopping");
    }
    return {};
}

Status RestClient::may_send(const ApiRequest& request) {
    const Duration wait = guard_.lock()->reserve(clock_->now());
    if (wait > Duration::zero()) {
        log::debug("delaying requests: the rate limit is reached", {{"what", request.what}});
        STOKER_TRY_VOID(pause(wait));
    }
    const bool writes =
        request.verb != Verb::kGet && request.target.find("/tokenreviews") == std::string::npos;
    if (writes && may_write_ && !may_write_()) {
        return fail(ErrorCode::kCancelled, "this replica does not lead, so it may not write");
    }
    return {};
}

Result<ApiResponse> RestClient::send(const ApiRequest& request) {
    for (std::uint32_t tries = 1;; ++tries) {
        if (auto may = may_send(request); !may) {
            return fail(may.error().prefixed(request.what));
        }
        auto outcome = transport_->call(request, options_.time_limit, stop_);
        if (outcome) {
            log_warnings(*outcome);
        }
        const auto wait = retry_after(request.verb, outcome, tries, options_.retry);
        if (!wait) {
            if (!outcome) {
                return fail(outcome.error().prefixed(request.what));
            }
            return outcome;
        }
        STOKER_TRY_VOID(pause(*wait));
    }
}

Result<Object> RestClient::send_for_object(const ApiRequest& request) {
    STOKER_TRY(const ApiResponse response, send(request));
    if (!is_success(response)) {
        return fail(refusal_of(request, response));
    }
    auto json = Json::parse(response.body);
    if (!json) {
        return fail(json.error().prefixed(request.what));
    }
    auto object = read_object(*json);
    if (!object) {
        return fail(object.error().prefixed(request.what));
    }
    return object;
}

void RestClient::log_warnings(const ApiResponse& response) {
    for (const std::string& text : response.warnings) {
        auto warned = warned_.lock();
        if (warned->size() < kWarningsMax && warned->insert(text).second) {
            log::warning("the API server warns", {{"text", text}});
        }
    }
}

Result<Object> RestClient::get(const ResourceKind& kind, const ObjectKey& key) {
    STOKER_TRY_VOID(validate_key(kind, key));
    return send_for_object(get_request(kind, key));
}

Result<std::string> RestClient::get_page(const std::string& path) {
    const ApiRequest request = page_request(path);
    STOKER_TRY(ApiResponse response, send(request));
    return response.status == 200 ? Result<std::string>(std::move(response.body))
                                  : fail(refusal_of(request, response));
}

Result<std::vector<Object>> RestClient::list(const ResourceKind& kind, const Scope& scope) {
    ListParams params;
    params.scope = scope;
    params.limit = kPageSize;
    std::vector<Object> objects;
    do {
        const ApiRequest request = list_request(kind, params);
        STOKER_TRY(const ApiResponse response, send(request));
        if (response.status != 200) {
            return fail(refusal_of(request, response));
        }
        Status read;
        STOKER_TRY(const ListPage page, read_list(response.body, [&](web::json::value&& item) {
                       auto object = read_object(std::move(item), kind.api_version(), kind.kind);
                       if (object) {
                           objects.push_back(*std::move(object));
                       } else {
                           read = fail(object.error());
                       }
                   }));
        STOKER_TRY_VOID(read);
        params.continue_token = page.continue_token;
    } while (!params.continue_token.empty());
    return objects;
}

Result<Object> RestClient::create(
    const ResourceKind& kind, const std::string& ns, const Json& body) {
    STOKER_TRY_VOID(validate_key(kind, {ns, string_at(body.value(), {"metadata", "name"})}));
    return send_for_object(create_request(kind, ns, body));
}

Result<Object> RestClient::replace(
    const ResourceKind& kind, const ObjectKey& key, const Json& body) {
    STOKER_TRY_VOID(validate_key(kind, key));
    return send_for_object(replace_request(kind, key, body));
}

Result<Object> RestClient::apply(const ResourceKind& kind, const ObjectKey& key, const Json& body) {
    STOKER_TRY_VOID(validate_key(kind, key));
    return send_for_object(apply_request(kind, key, body, {options_.field_manager}));
}

Result<Object> RestClient::apply_status(
    const ResourceKind& kind, const ObjectKey& key, const Json& body) {
    return apply_status_as(options_.field_manager, kind, key, body);
}

Result<Object> RestClient::apply_status_as(
    const std::string& field_manager,
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body) {
    STOKER_TRY_VOID(validate_key(kind, key));
    return send_for_object(apply_request(kind, key, body, {field_manager, "status"}));
}

Result<Object> RestClient::patch(
    const ResourceKind& kind, const ObjectKey& key, const Json& body, PatchType type) {
    STOKER_TRY_VOID(validate_key(kind, key));
    return send_for_object(patch_request(kind, key, body, type));
}

Status RestClient::remove(
    const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) {
    STOKER_TRY_VOID(validate_key(kind, key));
    const ApiRequest request = delete_request(kind, key, params);
    STOKER_TRY(const ApiResponse response, send(request));
    return is_success(response) || response.status == 404 ? Status{}
                                                          : fail(refusal_of(request, response));
}

Result<Json> RestClient::send_for_review(const ApiRequest& request) {
    STOKER_TRY(const ApiResponse response, send(request));
    if (!is_success(response)) {
        Error refused = refusal_of(request, response);
        // The API server refused the operator's own request, not the caller under review.
        if (refused.code == ErrorCode::kForbidden) {
            refused.code = ErrorCode::kUnavailable;
        }
        return fail(std::move(refused));
    }
    return Json::parse(response.body);
}

Status RestClient::review_access(
    const TokenOwner& user, std::string_view verb, std::string_view path) {
    STOKER_TRY(
        const Json review,
        send_for_review(access_review_request(user.username, user.groups, verb, path)));
    if (!is_true_at(review.value(), {"status", "allowed"})) {
        return fail(
            ErrorCode::kForbidden, fmt::format("{} may not {} {}", user.username, verb, path));
    }
    return {};
}

Result<TokenOwner> RestClient::review_token(
    std::string_view token, const std::vector<std::string>& audiences) {
    STOKER_TRY(const Json review, send_for_review(token_review_request(token, audiences)));
    const auto* user = find_at(review.value(), {"status", "user"});
    if (!is_true_at(review.value(), {"status", "authenticated"}) || user == nullptr) {
        const std::string why = string_at(review.value(), {"status", "error"});
        return fail(ErrorCode::kForbidden, why.empty() ? "the token is not valid" : why);
    }
    if (!names_one_of(review.value(), audiences)) {
        return fail(ErrorCode::kForbidden, "the token was made for another audience");
    }
    return read_owner(*user);
}

}  // namespace stoker::control
