#pragma once

#include "common/base/clock.h"

namespace stoker::sidecar {

// Time that the calling thread was blocked since construction: neither running nor waiting for a
// processor. Around a file system call this is the disk's time, even on a busy machine. Source:
// Linux's /proc/thread-self/schedstat; where that is missing, elapsed() is zero. Start and end
// together cost about 3 us. Use it on one thread.
class BlockedTime {
public:
    BlockedTime();

    [[nodiscard]] Duration elapsed() const;

private:
    struct Reading {
        Duration wall{};
        Duration running{};
        Duration runnable{};
        bool known = false;
    };

    static Reading read();

    Reading begin_;
};

}  // namespace stoker::sidecar
