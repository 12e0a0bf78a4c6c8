#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/runtime/accept_loop.h"
#include "common/runtime/event_loop.h"
#include "proto/files/hand_over.h"

namespace stoker::node {

// One mount of files: its descriptor, if this process has it, and the connections of its
// stoker-files, on its own thread. Nobody waits for this thread, because it closes descriptors that
// strangers sent, which can block. After end() the thread ends, and destroys this object. Any
// thread may call the functions; they do not wait.
class FileSession : public std::enable_shared_from_this<FileSession> {
public:
    struct Options {
        bool is_mounted = false;  // the files are mounted already

        // How long a mount stays without any connection. Then its descriptor is closed, which ends
        // the mount: readers get ENOTCONN, and nothing else could end their waiting.
        Duration patience{};

        // Called on the session's thread if neither process has the mount's descriptor: mounts the
        // files again and calls set_mounted().
        std::function<Status(FileSession&)> remount;
    };

    // `listener` is a SOCK_SEQPACKET socket that does not block. kResourceExhausted: no thread.
    static Result<std::shared_ptr<FileSession>> start(UniqueFd listener, Options options);
    FileSession(const FileSession&) = delete;
    FileSession& operator=(const FileSession&) = delete;
    ~FileSession() = default;

    // Call when the files are mounted. A new descriptor is sent to the connected stoker-files.
    void set_mounted(std::optional<UniqueFd> descriptor);

    // Call when the files are no longer mounted.
    void set_unmounted();

    // Whether a descriptor of set_mounted() is on its way to the thread.
    [[nodiscard]] bool is_mount_coming() const { return coming_ > 0; }

    // Ends the connections and closes the descriptor.
    void end();

private:
    using Place = std::list<UniqueFd>::iterator;

    FileSession(UniqueFd listener, Options options);

    void run();
    void keep(UniqueFd descriptor);
    void adopt(UniqueFd socket);
    void drop(Place place);
    void take(Place place);
    Status answer(int socket, files::ReceivedHandOver& received);
    Status answer_hello(int socket, files::ReceivedHandOver& received);

    SystemClock clock_;  // its own clock, because the thread may outlive everything else
    Options options_;
    std::atomic<int> coming_{0};
    EventLoop loop_;

    // Only the thread uses the members below.
    LoopTimer abandoned_;
    UniqueFd mount_;
    bool is_mounted_;
    std::uint64_t revision_ = 0;
    std::list<UniqueFd> connections_;  // oldest first
    std::unique_ptr<AcceptLoop> accepts_;
};

}  // namespace stoker::node
