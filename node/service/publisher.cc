#include "node/service/publisher.h"

#include <fmt/format.h>

#include "common/log/log.h"

namespace stoker::node {

namespace {

constexpr std::size_t kTargetSizeMax = 4000;  // the kernel's path limit is 4,096

Status check_target(const std::string& target) {
    const bool good = target.size() <= kTargetSizeMax && target.starts_with('/') &&
                      target.find("/../") == std::string::npos && !target.ends_with("/..") &&
                      target.find('\0') == std::string::npos;
    return good ? Status{}
                : Status{fail(ErrorCode::kInvalidArgument, "target_path is no absolute path")};
}

}  // namespace

Status Publisher::publish(
    const std::map<std::string, std::string>& context, bool read_only, const std::string& target) {
    STOKER_TRY_VOID(check_target(target));
    STOKER_TRY(const ViewRequest request, parse_view_request(context, read_only));
    if (request.is_foreign()) {
        STOKER_TRY_VOID(parts_.facts.check_shared(request));
    }
    if (request.is_of_files()) {
        STOKER_TRY_VOID(parts_.files.publish(request, target));
        log::info("files mounted", {{"pod", request.pod.ns + "/" + request.pod.name}});
        return {};
    }
    STOKER_TRY(const std::string path, parts_.facts.pool_path(request.pool));
    const auto pool = PoolDirectory::open(parts_.host_root, path, request.pool, parts_.user);
    if (!pool) {
        return fail(pool.error().prefixed(fmt::format("CachePool {}", request.pool)));
    }
    STOKER_TRY(const UniqueFd source, pool->view_source(request));
    const Access access = request.view == View::kOwner ? Access::kReadWrite : Access::kReadOnly;
    STOKER_TRY_VOID(parts_.mounts.mount(source.get(), target, access));
    log::info(
        "view mounted",
        {{"pod", request.pod.ns + "/" + request.pod.name},
         {"directory", request.directory.ns + "/" + request.directory.uid},
         {"pool", request.pool},
         {"writable", access == Access::kReadWrite}});
    return {};
}

Status Publisher::unpublish(const std::string& target) {
    STOKER_TRY_VOID(check_target(target));
    // Before the unmount: until it has forgotten the target, FileMounts may mount there again.
    const Status forgotten = parts_.files.unpublish(target);
    STOKER_TRY_VOID(parts_.mounts.unmount(target));
    return forgotten;
}

}  // namespace stoker::node
