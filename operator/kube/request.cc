#include "operator/kube/request.h"

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr std::string_view kPartialObject = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
constexpr std::string_view kPartialList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

// Builds "?a=b&c=d" and leaves out what is empty.
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

std::string_view propagation_text(Propagation propagation) {
    switch (propagation) {
        case Propagation::kBackground:
            return "Background";
        case Propagation::kForeground:
            return "Foreground";
        case Propagation::kOrphan:
            return "Orphan";
    }
    return "Background";
}

bool is_path_segment(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of("/%") == std::string_view::npos;
}

}  // namespace

std::string_view to_string(Verb verb) {
    switch (verb) {
        case Verb::kGet:
            return "GET";
        case Verb::kPost:
            return "POST";
        case Verb::kPut:
            return "PUT";
        case Verb::kPatch:
            return "PATCH";
        case Verb::kDelete:
            return "DELETE";
    }
    return "GET";
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
    if (params.scope.metadata_only) {
        request.accept += kPartialList;
    }
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
    if (params.scope.metadata_only) {
        request.accept += kPartialObject;
    }
    request.what = describe("watching", kind, params.scope);
    return request;
}

ApiRequest create_request(const ResourceKind& kind, const std::string& ns, const Json& body) {
    ApiRequest request;
    request.verb = Verb::kPost;
    request.target = collection_path(kind, ns) + Query{}.add("fieldValidation", "Strict").text();
    request.content_type = "application/json";
    request.body = body.text();
    request.what =
        describe("creating", kind, ObjectKey{ns, string_at(body.value(), {"metadata", "name"})});
    return request;
}

ApiRequest replace_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    std::string_view subresource) {
    ApiRequest request;
    request.verb = Verb::kPut;
    request.target = object_path(kind, key, subresource);
    request.content_type = "application/json";
    request.body = body.text();
    request.what = describe("replacing", kind, key);
    return request;
}

ApiRequest apply_request(
    const ResourceKind& kind, const ObjectKey& key, const Json& body, const ApplyParams& params) {
    Query query;
    query.add("fieldManager", params.field_manager)
        .add("force", params.force ? "true" : "")
        .add("dryRun", params.dry_run ? "All" : "")
        .add("fieldValidation", params.subresource.empty() ? "Strict" : "");
    ApiRequest request;
    request.verb = Verb::kPatch;
    request.target = object_path(kind, key, params.subresource) + query.text();
    request.content_type = "application/apply-patch+yaml";
    request.body = body.text();
    request.what =
        describe(params.subresource.empty() ? "applying" : "applying status of", kind, key);
    return request;
}

ApiRequest patch_request(
    const ResourceKind& kind,
    const ObjectKey& key,
    const Json& body,
    PatchType type,
    std::string_view subresource) {
    ApiRequest request;
    request.verb = Verb::kPatch;
    request.target = object_path(kind, key, subresource);
    request.content_type =
        type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json";
    request.body = body.text();
    request.what = describe("patching", kind, key);
    return request;
}

ApiRequest delete_request(
    const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) {
    const Json options = json_object(
        {{"kind", "DeleteOptions"},
         {"apiVersion", "v1"},
         {"propagationPolicy", propagation_text(params.propagation)},
         {"preconditions",
          json_object({{"uid", params.uid}, {"resourceVersion", params.resource_version}})},
         {"gracePeriodSeconds", params.grace_seconds}});
    ApiRequest request;
    request.verb = Verb::kDelete;
    request.target = object_path(kind, key);
    request.content_type = "application/json";
    request.body = options.text();
    request.what = describe("deleting", kind, key);
    return request;
}

ApiRequest token_review_request(std::string_view token, const std::vector<std::string>& audiences) {
    const Json body = json_object(
        {{"apiVersion", kinds::kTokenReviews.api_version()},
         {"kind", kinds::kTokenReviews.kind},
         {"spec", json_object({{"token", token}, {"audiences", audiences, Presence::kAlways}})}});
    ApiRequest request = create_request(kinds::kTokenReviews, "", body);
    request.what = "reviewing a token";
    return request;
}

ApiRequest access_review_request(
    std::string_view user,
    const std::vector<std::string>& groups,
    std::string_view verb,
    std::string_view path) {
    const Json spec = json_object(
        {{"user", user},
         {"groups", groups, Presence::kAlways},
         {"nonResourceAttributes", json_object({{"verb", verb}, {"path", path}})}});
    const Json body = json_object(
        {{"apiVersion", kinds::kSubjectAccessReviews.api_version()},
         {"kind", kinds::kSubjectAccessReviews.kind},
         {"spec", spec}});
    ApiRequest request = create_request(kinds::kSubjectAccessReviews, "", body);
    request.what = fmt::format("asking whether {} may {} {}", user, verb, path);
    return request;
}

ApiRequest token_request(
    const ObjectKey& service_account, std::string_view audience, std::uint32_t seconds) {
    const Json spec =
        json_object({{"audiences", std::vector<Json>{audience}}, {"expirationSeconds", seconds}});
    const Json body = json_object(
        {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", spec}});
    ApiRequest request;
    request.verb = Verb::kPost;
    request.target = object_path(kinds::kServiceAccounts, service_account, "token");
    request.content_type = "application/json";
    request.body = body.text();
    request.what = fmt::format("getting a token of ServiceAccount {}", to_string(service_account));
    return request;
}

}  // namespace stoker::control
