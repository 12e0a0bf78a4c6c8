#pragma once

#include <functional>
#include <string>

#include "common/base/accept_backoff.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"

namespace stoker {

// Accepts the connections of a listening socket. Pauses while no file descriptor is left for
// another connection; connections wait in the backlog meanwhile. Use it on the loop's thread.
class AcceptLoop {
public:
    using OnAccept = std::function<void(UniqueFd socket)>;

    // `socket` must not block; accepted sockets do not block either. `name`: name in the log.
    AcceptLoop(EventLoop& loop, UniqueFd socket, std::string name, OnAccept on_accept);
    AcceptLoop(const AcceptLoop&) = delete;
    AcceptLoop& operator=(const AcceptLoop&) = delete;
    ~AcceptLoop();

    // While paused, connections wait in the backlog.
    void set_paused(bool paused);

private:
    void accept_some();
    void back_off(int error_number);

    EventLoop& loop_;
    UniqueFd socket_;
    std::string name_;
    OnAccept on_accept_;
    AcceptBackoff backoff_;
    LoopTimer resume_timer_;
    bool paused_ = false;
};

}  // namespace stoker
