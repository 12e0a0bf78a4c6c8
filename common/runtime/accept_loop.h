#pragma once

#include <functional>
#include <string>

#include "common/base/accept_backoff.h"
#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"

namespace stoker {

// Accepts the connections of a listening socket. Pauses while there is no descriptor for another
// connection; they wait in the backlog meanwhile. Use it on the loop's thread.
class AcceptLoop {
public:
    using OnAccept = std::function<void(UniqueFd socket)>;

    // `socket` must not block; accepted ones do not either. `name`: for the log.
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
