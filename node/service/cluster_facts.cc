#include "node/service/cluster_facts.h"

#include <fmt/format.h>

#include "operator/api/cache_pool.h"
#include "operator/api/dataset.h"
#include "operator/api/document.h"
#include "operator/kube/resource_kind.h"

namespace stoker::node {

namespace {

namespace kinds = control::kinds;

const control::ResourceKind kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};

// True if the object is gone, being deleted, or no longer readable for us. An unreachable API
// server proves nothing.
bool is_going(const Result<control::Object>& object) {
    if (!object) {
        return object.error().code == ErrorCode::kNotFound ||
               object.error().code == ErrorCode::kForbidden;
    }
    const auto meta = control::read_document<control::ObjectMeta>(object->raw);
    return meta && meta->deleting_since.has_value();
}

}  // namespace

Result<std::string> ApiFacts::pool_path(const std::string& pool) {
    {
        const auto pools = pools_.lock();
        const auto found = pools->find(pool);
        if (found != pools->end() && clock_.now() - found->second.asked_at < kRemember) {
            return found->second.path;
        }
    }
    const auto object = client_.get(kinds::kCachePools, {"", pool});
    if (!object) {
        return fail(object.error().prefixed(fmt::format("CachePool {}", pool)));
    }
    STOKER_TRY(const auto parsed, control::read_document<control::CachePool>(object->raw));
    (*pools_.lock())[pool] = {parsed.spec.host_path, clock_.now()};
    return parsed.spec.host_path;
}

Status ApiFacts::check_shared(const ViewRequest& request) {
    const auto refused = [&] {
        return fail(
            ErrorCode::kForbidden,
            fmt::format(
                "dataset {}/{} is not shared with namespace {}",
                request.directory.ns,
                request.dataset.empty() ? request.directory.uid : request.dataset,
                request.pod.ns));
    };
    if (request.dataset.empty()) {
        return refused();
    }
    const auto object = client_.get(kinds::kDatasets, {request.directory.ns, request.dataset});
    if (!object) {
        return object.error().code == ErrorCode::kNotFound ? refused()
                                                           : Status{fail(object.error())};
    }
    STOKER_TRY(const auto dataset, control::read_document<control::Dataset>(object->raw));
    STOKER_TRY(const auto ns, client_.get(kinds::kNamespaces, {"", request.pod.ns}));
    STOKER_TRY(const auto meta, control::read_document<control::ObjectMeta>(ns.raw));
    const bool shared = dataset.meta.uid == request.directory.uid && dataset.spec.shared_with &&
                        control::selects(*dataset.spec.shared_with, meta.labels);
    return shared ? Status{} : refused();
}

// Checks the namespace too, because its deletion may stop this pod before it deletes the DaemonSet.
// kForbidden (401 or 403) counts as deleted: our ServiceAccount went with the namespace.
bool ApiFacts::is_uninstalled() {
    return is_going(client_.get(kinds::kNamespaces, {"", own_.ns})) ||
           is_going(client_.get(kDaemonSets, {own_.ns, own_.name}));
}

}  // namespace stoker::node
