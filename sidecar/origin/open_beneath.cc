#include "sidecar/origin/open_beneath.h"

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stoker::sidecar {

namespace {

constexpr const char* kLeaves = "leads out of the directory";

int open_in_kernel(int root, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
}

// For kernels and sandboxes without openat2(): one component at a time, no links.
Result<UniqueFd> open_by_components(int root, std::string_view path, int flags) {
    UniqueFd directory{::fcntl(root, F_DUPFD_CLOEXEC, 0)};
    while (true) {
        const auto slash = path.find('/');
        const std::string name{path.substr(0, slash)};
        if (name == ".." || name.empty()) {
            return fail(ErrorCode::kForbidden, kLeaves);
        }
        const bool last = slash == std::string_view::npos;
        const int step = last ? flags : O_RDONLY | O_DIRECTORY | O_CLOEXEC;
        UniqueFd next{::openat(directory.get(), name.c_str(), step | O_NOFOLLOW)};
        if (!next.valid()) {
            return errno == ELOOP ? fail(ErrorCode::kForbidden, "is or lies behind a symbolic link")
                                  : fail(file_error(errno));
        }
        if (last) {
            return next;
        }
        directory = std::move(next);
        path.remove_prefix(slash + 1);
    }
}

}  // namespace

Error file_error(int error_number) {
    const std::string words = std::generic_category().message(error_number);
    switch (error_number) {
        case ENOENT:
        case ENOTDIR:
            return {ErrorCode::kNotFound, words};
        case EACCES:
        case EPERM:
            return {ErrorCode::kForbidden, words};
        case ENAMETOOLONG:
        case EINVAL:
        case EISDIR:
        case ENXIO:
            return {ErrorCode::kInvalidArgument, words};
        case EMFILE:
        case ENFILE:
        case ENOMEM:
            return {ErrorCode::kResourceExhausted, words};
        default:
            return {ErrorCode::kUnavailable, words};
    }
}

Result<UniqueFd> open_beneath(int root, const std::string& path, int flags) {
    if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) {
        return fail(ErrorCode::kForbidden, kLeaves);
    }
    UniqueFd opened{open_in_kernel(root, path, flags)};
    if (opened.valid()) {
        return opened;
    }
    // EPERM is how older container sandboxes say that they do not know the call.
    if (errno == ENOSYS || errno == EPERM) {
        return open_by_components(root, path, flags);
    }
    if (errno == EXDEV) {
        return fail(ErrorCode::kForbidden, kLeaves);
    }
    return fail(file_error(errno));
}

}  // namespace stoker::sidecar
