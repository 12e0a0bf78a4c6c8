#include "sidecar/service/unix_listener.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/posix_error.h"

namespace stoker::sidecar {

namespace {

constexpr int kBacklog = 256;

// An address that reaches `path` through a descriptor of its folder, because sun_path holds only
// 107 bytes.
struct SocketAddress {
    UniqueFd folder;
    sockaddr_un address{};
};

Result<SocketAddress> address_of(const std::string& path) {
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    SocketAddress result;
    result.folder.reset(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!result.folder.valid()) {
        return fail_errno("opening the folder of", path);
    }
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string reached = fmt::format("/proc/self/fd/{}/{}", result.folder.get(), name);
    if (name.empty() || reached.size() >= sizeof(result.address.sun_path)) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("socket name of {} is too long", path));
    }
    result.address.sun_family = AF_UNIX;
    std::memcpy(result.address.sun_path, reached.c_str(), reached.size() + 1);
    return result;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<std::unique_ptr<UnixListener>> UnixListener::listen(
    EventLoop& loop, const std::string& path, mode_t mode, OnAccept on_accept) {
    // Binds another name first: `path` appears once connections are accepted.
    const std::string coming = path + ".new";
    STOKER_TRY(const auto address, address_of(coming));
    UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket.valid()) {
        return fail_errno("making a socket for", path);
    }
    ::unlink(coming.c_str());
    if (::bind(socket.get(), as_sockaddr(address.address), sizeof(address.address)) != 0 ||
        ::chmod(coming.c_str(), mode) != 0 || ::listen(socket.get(), kBacklog) != 0 ||
        ::rename(coming.c_str(), path.c_str()) != 0) {
        return fail_errno("listening on", path);
    }
    return std::unique_ptr<UnixListener>{
        new UnixListener(loop, std::move(socket), path, std::move(on_accept))};
}

UnixListener::UnixListener(EventLoop& loop, UniqueFd socket, std::string path, OnAccept on_accept)
    : path_(std::move(path)),
      on_accept_(std::move(on_accept)),
      accepts_(loop, std::move(socket), path_, [this](UniqueFd accepted) {
          accept(std::move(accepted));
      }) {}

UnixListener::~UnixListener() {
    ::unlink(path_.c_str());
}

void UnixListener::accept(UniqueFd accepted) {
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (::getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
        on_accept_(std::move(accepted), {credentials.pid, credentials.uid, credentials.gid});
    }
}

Result<UniqueFd> connect_unix(const std::string& path) {
    STOKER_TRY(const auto address, address_of(path));
    UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket.valid()) {
        return fail_errno("making a socket for", path);
    }
    if (::connect(socket.get(), as_sockaddr(address.address), sizeof(address.address)) != 0) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("connecting to {}: {}", path, std::strerror(errno)));
    }
    return socket;
}

}  // namespace stoker::sidecar
