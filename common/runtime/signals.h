#pragma once

#include <functional>

#include "common/base/unique_fd.h"
#include "common/runtime/event_loop.h"

namespace stoker {

// Turns SIGTERM and SIGINT into a call on the event loop. Create it before any other thread starts,
// so that all threads inherit the blocked signals. It also ignores SIGPIPE. One instance per
// program.
class StopSignals {
public:
    StopSignals(EventLoop& loop, std::function<void(int signal)> on_stop);
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
    ~StopSignals();

private:
    EventLoop& loop_;
    UniqueFd fd_;
};

}  // namespace stoker
