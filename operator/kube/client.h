#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/kube/object.h"
#include "operator/kube/request.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

// Whose token it is.
struct TokenOwner {
    std::string username;  // "system:serviceaccount:demo:trainer"
    std::string uid;
    std::vector<std::string> groups;
    std::string pod_name;  // of a token bound to a pod, else ""
    std::string pod_uid;
    std::string node_name;  // of that pod; "" where the server does not say it (before 1.30)
};

// The verbs that controllers use. Thread-safe; every call blocks until it is answered, given up, or
// the client is closed.
//
// Errors, besides those of ApiFailure::error(): kUnavailable and kDeadlineExceeded (no answer; a
// write may have happened), kCancelled (we are stopping, or we do not lead and may not write).
// Messages say what was being done.
//
// Idempotent by construction: name what you create deterministically and treat kAlreadyExists as
// "look whose it is"; removing what is not there succeeds.
class ApiClient {
public:
    virtual ~ApiClient() = default;

    virtual Result<Object> get(const ResourceKind& kind, const ObjectKey& key) = 0;

    // All pages. For rare looks; what is read often belongs into an informer.
    virtual Result<std::vector<Object>> list(const ResourceKind& kind, const Scope& scope) = 0;

    // POST. `body` names apiVersion, kind and metadata.name.
    virtual Result<Object> create(
        const ResourceKind& kind, const std::string& ns, const Json& body) = 0;

    // PUT; with metadata.resourceVersion in `body` only over that version.
    virtual Result<Object> replace(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // Server-side apply of only the fields that we own; what we owned and now leave out is given
    // up. It creates what is missing: put metadata.uid into the body to change only an object that
    // exists.
    virtual Result<Object> apply(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // The same for the status subresource; never creates.
    virtual Result<Object> apply_status(
        const ResourceKind& kind, const ObjectKey& key, const Json& body) = 0;

    // The same in the name of another field manager, whose fields they are.
    virtual Result<Object> apply_status_as(
        const std::string& field_manager,
        const ResourceKind& kind,
        const ObjectKey& key,
        const Json& body) = 0;

    virtual Result<Object> patch(
        const ResourceKind& kind, const ObjectKey& key, const Json& body, PatchType type) = 0;

    // Success also when it is gone already. kConflict: another UID or version than params demand.
    virtual Status remove(
        const ResourceKind& kind, const ObjectKey& key, const DeleteParams& params) = 0;

    // Asks whose `token` it is, if it was made for one of `audiences`. kForbidden: not a valid one.
    virtual Result<TokenOwner> review_token(
        std::string_view token, const std::vector<std::string>& audiences) = 0;

    // Asks whether RBAC lets that user do `verb` at `path`, which is no resource. kForbidden: no.
    virtual Status review_access(
        const TokenOwner& user, std::string_view verb, std::string_view path) = 0;
};

}  // namespace stoker::control
