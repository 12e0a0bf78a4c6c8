#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "operator/api/json.h"
#include "operator/kube/object.h"
#include "operator/kube/resource_kind.h"

// Every request to the API server, built as a value; nothing here sends it. The transport adds
// scheme and host, User-Agent and Authorization.
namespace stoker::control {

enum class Verb : std::uint8_t { kGet, kPost, kPut, kPatch, kDelete };

std::string_view to_string(Verb verb);  // "GET"

// The kind of a request, for logs and metric labels.
enum class Traffic : std::uint8_t { kUnary, kList, kWatch };

struct ApiRequest {
    Verb verb = Verb::kGet;
    std::string target;        // path and query, percent-encoded, from the leading '/'
    std::string content_type;  // empty when there is no body
    std::string accept = "application/json";
    std::string body;
    Traffic traffic = Traffic::kUnary;
    std::string what;  // for people: "applying jobs demo/mnist-a1"
    // More headers, which the API server forwards to a proxied pod.
    std::vector<std::pair<std::string, std::string>> headers{};

    bool operator==(const ApiRequest&) const = default;
};

// Which objects of a kind. An empty `ns` means all of them (or a cluster-scoped kind).
struct Scope {
    std::string ns;
    std::string label_selector;
    std::string field_selector;
};

struct ListParams {
    Scope scope;
    std::string resource_version;  // "" = fresh by quorum, "0" = any cached state, a number = not
                                   // older than
    std::uint32_t limit = 0;       // 0 = no limit
    std::string continue_token;    // of the previous page; if set, resource_version is not sent
};

struct WatchParams {
    Scope scope;
    std::string resource_version;
    std::uint32_t timeout_seconds = 300;
};

struct ApplyParams {
    std::string field_manager;
    std::string subresource{};  // "" or "status"
    bool force = true;
};

enum class Propagation : std::uint8_t { kBackground, kForeground };

struct DeleteParams {
    std::string uid;               // precondition; empty = none
    std::string resource_version;  // precondition; empty = none
    Propagation propagation = Propagation::kBackground;
    std::optional<std::uint32_t> grace_seconds;
};

enum class PatchType : std::uint8_t { kMerge, kJson };

ApiRequest get_request(const ResourceKind& kind, const ObjectKey& key);
// A page that is not a resource, such as "/openid/v1/jwks".
ApiRequest page_request(const std::string& path);
ApiRequest list_request(const ResourceKind& kind, const ListParams& params);
ApiRequest watch_request(const ResourceKind& kind, const WatchParams& params);
ApiRequest create_request(const ResourceKind& kind, const std::string& ns, const Json& body);
// PUT of the whole object; metadata.resourceVersion in the body makes it conditional.
ApiRequest replace_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    std::string_view subresource = {});
// Server-side apply. The body names apiVersion, kind, metadata.name and only the fields that we
// own.
ApiRequest apply_request(
    const ResourceKind& kind, const ObjectKey& key, const Json& body, const ApplyParams& params);
ApiRequest patch_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    PatchType type,
    std::string_view subresource = {});
ApiRequest delete_request(
    const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params);
// Asks for the owner of `token` and checks its audience against `audiences`.
ApiRequest token_review_request(std::string_view token, const std::vector<std::string>& audiences);
// Asks whether a user may do `verb` ("get") at a non-resource path such as "/debug/allocation".
ApiRequest access_review_request(
    std::string_view user,
    const std::vector<std::string>& groups,
    std::string_view verb,
    std::string_view path);
// Requests a token of that ServiceAccount for `audience`. The API server issues none that expires
// in less than ten minutes.
ApiRequest token_request(
    const ObjectKey& service_account, std::string_view audience, std::uint32_t seconds);

// Creates and applies use fieldValidation=Strict: the server refuses unknown fields instead of
// dropping them. Status writes do not: a status may be newer than the CRD in the cluster.

// Users choose names: "..", "a/b" or "%2e" must not lead to another path. kInvalidArgument: name or
// namespace is not a valid path segment, or one is missing or unexpected.
Status validate_key(const ResourceKind& kind, const ObjectKey& key);

// RFC 3986: encodes everything except letters, digits and "-._~" as %XX.
std::string percent_encode(std::string_view text);

}  // namespace stoker::control
