#include "sidecar/origin/open_beneath.h"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::sidecar {

namespace {

tl::unexpected<Error> refuse(const std::string& path, const char* why) {
    return fail(ErrorCode::kForbidden, fmt::format("'{}': {}", path, why));
}

tl::unexpected<Error> leaves(const std::string& path) {
    return refuse(path, "leads out of the directory");
}

// Converts errno. A path to a socket, or through a file, counts as gone.
tl::unexpected<Error> not_opened(const std::string& path) {
    const bool is_gone = errno == ENOTDIR || errno == ENXIO;
    return fail(posix_error(is_gone ? ENOENT : errno, "opening", fmt::format("'{}'", path)));
}

int open_in_kernel(int root, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
}

// Opens one component at a time and follows no links, for kernels and sandboxes without openat2().
Result<UniqueFd> open_by_components(int root, const std::string& path, int flags) {
    std::string_view rest{path};
    UniqueFd directory{::fcntl(root, F_DUPFD_CLOEXEC, 0)};
    while (true) {
        const auto slash = rest.find('/');
        const std::string name{rest.substr(0, slash)};
        if (name == ".." || name.empty()) {
            return leaves(path);
        }
        const bool last = slash == std::string_view::npos;
        const int step = last ? flags : O_RDONLY | O_DIRECTORY | O_CLOEXEC;
        UniqueFd next{::openat(directory.get(), name.c_str(), step | O_NOFOLLOW)};
        if (!next.valid()) {
            return errno == ELOOP ? refuse(path, "is or lies behind a symbolic link")
                                  : not_opened(path);
        }
        if (last) {
            return next;
        }
        directory = std::move(next);
        rest.remove_prefix(slash + 1);
    }
}

}  // namespace

Result<UniqueFd> open_beneath(int root, const std::string& path, int flags) {
    if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos) {
        return leaves(path);
    }
    UniqueFd opened{open_in_kernel(root, path, flags)};
    if (opened.valid()) {
        return opened;
    }
    // Older container sandboxes return EPERM for unknown calls.
    if (errno == ENOSYS || errno == EPERM) {
        return open_by_components(root, path, flags);
    }
    if (errno == EXDEV) {
        return leaves(path);
    }
    return not_opened(path);
}

}  // namespace stoker::sidecar
