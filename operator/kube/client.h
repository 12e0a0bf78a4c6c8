#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/kube/object.h"
#include "operator/kube/request.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

// The owner of a token.
struct TokenOwner {
    std::string username;  // "system:serviceaccount:demo:trainer"
    std::string uid;
    std::vector<std::string> groups;
    std::string pod_name;  // of a token bound to a pod, else ""
    std::string pod_uid;
    std::string node_name;  // of that pod; "" if the server does not report it (before 1.30)
};

// The API calls of the controllers. Thread-safe; every call blocks until it is answered, has
// failed, or the client is closed.
//
// Errors, besides those of ApiFailure::error(): kUnavailable and kDeadlineExceeded (no response; a
// write may have happened), kCancelled (we are stopping, or do not lead and may not write).
// Messages name the operation.
//
// Idempotency: give created objects deterministic names, and on kAlreadyExists check the owner;
// removing a missing object succeeds.
class ApiClient {
public:
    virtual ~ApiClient() = default;

    virtual Result<Object> get(const ResourceKind& kind, const ObjectKey& key) = 0;

    // Reads all pages. For rare reads; use an informer for frequent ones.
    virtual Result<std::vector<Object>> list(const ResourceKind& kind, const Scope& scope) = 0;

    // POST. `body` names apiVersion, kind and metadata.name.
    virtual Result<Object> create(
        const ResourceKind& kind, const std::string& ns, const Json& body) = 0;

    // PUT; metadata.resourceVersion in `body` makes it conditional.
    virtual Result<Object> replace(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // Server-side apply of only the fields that we own; an owned field that is left out is given
    // up. It creates a missing object: put metadata.uid into the body to change only an existing
    // one.
    virtual Result<Object> apply(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // As apply(), for the status subresource; never creates.
    virtual Result<Object> apply_status(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // As apply_status(), under another field manager, which then owns the fields.
    virtual Result<Object> apply_status_as(
        const std::string& field_manager,
        const ResourceKind& kind,
        const ObjectKey& key,
        const Json& body) = 0;

    virtual Result<Object> patch(
        const ResourceKind& kind, const ObjectKey& key, const Json& body, PatchType type) = 0;

    // Succeeds if the object is gone already. kConflict: its UID or version differs from params.
    virtual Status remove(
        const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) = 0;

    // Returns the owner of `token` if its audience is one of `audiences`. kForbidden: invalid
    // token.
    virtual Result<TokenOwner> review_token(
        std::string_view token, const std::vector<std::string>& audiences) = 0;

    // Checks that RBAC lets the user do `verb` at `path`, which is not a resource. kForbidden: no.
    virtual Status review_access(
        const TokenOwner& user, std::string_view verb, std::string_view path) = 0;
};

}  // namespace stoker::control
