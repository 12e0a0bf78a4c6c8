#include "operator/kube/request.h"

#include <array>

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr const char* kJson = "application/json";

// Builds "?a=b&c=d" and omits empty values.
class Query {
public:
    Query& add(std::string_view name, std::string_view value) {
        if (!value.empty()) {
            text_ += text_.empty() ? '?' : '&';
            text_ += fmt::format("{}={}", name, percent_encode(value));
        }
        return *this;
    }

    Query& add(std::string_view name, std::uint32_t value) {
        return value == 0 ? *this : add(name, fmt::format("{}", value));
    }

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
};

std::string collection_path(const ResourceKind& kind, const std::string& ns) {
    std::string path =
        kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
    if (kind.namespaced && !ns.empty()) {
        path += "/namespaces/" + percent_encode(ns);
    }
    return path + "/" + kind.plural;
}

std::string object_path(
    const ResourceKind& kind, const ObjectKey& key, std::string_view subresource = {}) {
    std::string path = collection_path(kind, key.ns) + "/" + percent_encode(key.name);
    if (!subresource.empty()) {
        path += fmt::format("/{}", subresource);
    }
    return path;
}

std::string describe(std::string_view doing, const ResourceKind& kind, const ObjectKey& key) {
    return fmt::format("{} {} {}", doing, kind.plural, to_string(key));
}

std::string describe(std::string_view doing, const ResourceKind& kind, const Scope& scope) {
    return scope.ns.empty() ? fmt::format("{} {}", doing, kind.plural)
                            : fmt::format("{} {} in {}", doing, kind.plural, scope.ns);
}

constexpr std::array<std::string_view, 5> kVerbs{"GET", "POST", "PUT", "PATCH", "DELETE"};
constexpr std::array<std::string_view, 2> kPropagations{"Background", "Foreground"};

// A request with a body that changes an object.
ApiRequest writing(
    Verb verb, std::string target, const char* content_type, const Json& body, std::string what) {
    ApiRequest request;
    request.verb = verb;
    request.target = std::move(target);
    request.content_type = content_type;
    request.body = body.text();
    request.what = std::move(what);
    return request;
}

// A review: a query by creating an object of that kind.
ApiRequest review(const ResourceKind& kind, const Json& spec, std::string what) {
    ApiRequest request = create_request(
        kind,
        "",
        json_object({{"apiVersion", kind.api_version()}, {"kind", kind.kind}, {"spec", spec}}));
    request.what = std::move(what);
    return request;
}

bool is_path_segment(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of("/%") == std::string_view::npos;
}

}  // namespace

std::string_view to_string(Verb verb) {
    return kVerbs.at(static_cast<std::size_t>(verb));
}

std::string percent_encode(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool plain = letter || (c >= '0' && c <= '9') ||
                           std::string_view("-._~").find(c) != std::string_view::npos;
        if (plain) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
    }
    return out;
}

Status validate_key(const ResourceKind& kind, const ObjectKey& key) {
    if (!is_path_segment(key.name)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{:?} cannot name an object of {}", key.name, kind.plural));
    }
    if (kind.namespaced ? !is_path_segment(key.ns) : !key.ns.empty()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{:?} cannot be the namespace of {}", key.ns, kind.plural));
    }
    return {};
}

ApiRequest get_request(const ResourceKind& kind, const ObjectKey& key) {
    ApiRequest request;
    request.target = object_path(kind, key);
    request.what = describe("getting", kind, key);
    return request;
}

ApiRequest page_request(const std::string& path) {
    ApiRequest request;
    request.target = path;
    request.accept = "*/*";
    request.what = "getting " + path;
    return request;
}

ApiRequest list_request(const ResourceKind& kind, const ListParams& params) {
    Query query;
    query.add("labelSelector", params.scope.label_selector)
        .add("fieldSelector", params.scope.field_selector)
        .add("limit", params.limit);
    if (params.continue_token.empty()) {
        query.add("resourceVersion", params.resource_version);
    } else {
        query.add("continue", params.continue_token);
    }
    ApiRequest request;
    request.target = collection_path(kind, params.scope.ns) + query.text();
    request.traffic = Traffic::kList;
    request.what = describe("listing", kind, params.scope);
    return request;
}

ApiRequest watch_request(const ResourceKind& kind, const WatchParams& params) {
    Query query;
    query.add("watch", "1")
        .add("allowWatchBookmarks", "true")
        .add("resourceVersion", params.resource_version)
        .add("timeoutSeconds", params.timeout_seconds)
        .add("labelSelector", params.scope.label_selector)
        .add("fieldSelector", params.scope.field_selector);
    ApiRequest request;
    request.target = collection_path(kind, params.scope.ns) + query.text();
    request.traffic = Traffic::kWatch;
    request.what = describe("watching", kind, params.scope);
    return request;
}

ApiRequest create_request(const ResourceKind& kind, const std::string& ns, const Json& body) {
    return writing(
        Verb::kPost,
        collection_path(kind, ns) + Query{}.add("fieldValidation", "Strict").text(),
        kJson,
        body,
        describe("creating", kind, ObjectKey{ns, string_at(body.value(), {"metadata", "name"})}));
}

ApiRequest replace_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    std::string_view subresource) {
    return writing(
        Verb::kPut,
        object_path(kind, key, subresource),
        kJson,
        body,
        describe("replacing", kind, key));
}

ApiRequest apply_request(
    const ResourceKind& kind, const ObjectKey& key, const Json& body, const ApplyParams& params) {
    Query query;
    query.add("fieldManager", params.field_manager)
        .add("force", params.force ? "true" : "")
        .add("fieldValidation", params.subresource.empty() ? "Strict" : "");
    return writing(
        Verb::kPatch,
        object_path(kind, key, params.subresource) + query.text(),
        "application/apply-patch+yaml",
        body,
        describe(params.subresource.empty() ? "applying" : "applying status of", kind, key));
}

ApiRequest patch_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    PatchType type,
    std::string_view subresource) {
    return writing(
        Verb::kPatch,
        object_path(kind, key, subresource),
        type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json",
        body,
        describe("patching", kind, key));
}

ApiRequest delete_request(
    const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) {
    const Json options = json_object(
        {{"kind", "DeleteOptions"},
         {"apiVersion", "v1"},
         {"propagationPolicy", kPropagations.at(static_cast<std::size_t>(params.propagation))},
         {"preconditions",
          json_object({{"uid", params.uid}, {"resourceVersion", params.resource_version}})},
         {"gracePeriodSeconds", params.grace_seconds}});
    return writing(
        Verb::kDelete, object_path(kind, key), kJson, options, describe("deleting", kind, key));
}

ApiRequest token_review_request(std::string_view token, const std::vector<std::string>& audiences) {
    return review(
        kinds::kTokenReviews,
        json_object({{"token", token}, {"audiences", audiences, Presence::kAlways}}),
        "reviewing a token");
}

ApiRequest access_review_request(
    std::string_view user,
    const std::vector<std::string>& groups,
    std::string_view verb,
    std::string_view path) {
    return review(
        kinds::kSubjectAccessReviews,
        json_object(
            {{"user", user},
             {"groups", groups, Presence::kAlways},
             {"nonResourceAttributes", json_object({{"verb", verb}, {"path", path}})}}),
        fmt::format("asking whether {} may {} {}", user, verb, path));
}

ApiRequest token_request(
    const ObjectKey& service_account, std::string_view audience, std::uint32_t seconds) {
    const Json spec =
        json_object({{"audiences", std::vector<Json>{audience}}, {"expirationSeconds", seconds}});
    return writing(
        Verb::kPost,
        object_path(kinds::kServiceAccounts, service_account, "token"),
        kJson,
        json_object(
            {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", spec}}),
        fmt::format("getting a token of ServiceAccount {}", to_string(service_account)));
}

}  // namespace stoker::control
