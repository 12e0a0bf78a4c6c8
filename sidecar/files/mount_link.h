#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace stoker::files {

// The connection to the node program at one mount's socket, on its own thread: receives the mount's
// descriptor, and gives it back to a node program that was restarted. Reconnects after a second.
class MountLink {
public:
    // Called once, on the link's thread, with the descriptor of the mount and the revision that the
    // mount already shows (0: none yet).
    using OnMount = std::function<void(UniqueFd descriptor, std::uint64_t revision)>;

    // Starts the thread.
    MountLink(std::string socket_path, OnMount on_mount);
    MountLink(const MountLink&) = delete;
    MountLink& operator=(const MountLink&) = delete;
    ~MountLink();

    // Tells the node program the revision that the mount shows from now on. Any thread.
    void tell_revision(std::uint64_t revision);

private:
    void run(const std::stop_token& stop);
    // Handles one connection until it ends.
    Status serve(const std::stop_token& stop);
    Status connect();
    Status await_message(const std::stop_token& stop) const;

    std::string socket_path_;
    OnMount on_mount_;
    std::mutex mutex_;  // guards socket_, mount_ and revision_
    UniqueFd socket_;
    UniqueFd mount_;  // our copy of the descriptor, for a restarted node program
    std::uint64_t revision_ = 0;
    std::jthread thread_;
};

}  // namespace stoker::files
