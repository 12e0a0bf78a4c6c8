#pragma once

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/runtime/accept_loop.h"
#include "common/runtime/event_loop.h"

namespace stoker::sidecar {

// Credentials of a unix socket's peer at connect time, from the kernel.
struct ProcessCredentials {
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;
};

// A listening unix stream socket. Its name appears only once connections are accepted, so clients
// may wait for the name. Replaces a stale socket file of the same name; the destructor removes its
// own. Paths may have any length: a descriptor of their folder shortens them. Pauses while there is
// no descriptor for another connection. Use it on the loop's thread.
class UnixListener {
public:
    using OnAccept = std::function<void(UniqueFd socket, const ProcessCredentials& peer)>;

    // Errors of posix_error(): the folder is missing or not writable; the message names the path.
    static Result<std::unique_ptr<UnixListener>> listen(
        EventLoop& loop, const std::string& path, mode_t mode, OnAccept on_accept);

    UnixListener(const UnixListener&) = delete;
    UnixListener& operator=(const UnixListener&) = delete;
    ~UnixListener();

    // While paused, new connections wait in the backlog.
    void set_paused(bool paused) { accepts_.set_paused(paused); }

private:
    UnixListener(EventLoop& loop, UniqueFd socket, std::string path, OnAccept on_accept);
    void accept(UniqueFd accepted);

    std::string path_;
    OnAccept on_accept_;
    AcceptLoop accepts_;
};

// Connects without waiting. kUnavailable: no process listens at `path` now.
Result<UniqueFd> connect_unix(const std::string& path);

}  // namespace stoker::sidecar
