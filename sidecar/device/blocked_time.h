#pragma once

#include "common/base/clock.h"

namespace stoker::sidecar {

// How long the calling thread has stood still since this was made: neither running nor waiting for
// a free processor. Around a system call on a file that is what the disk cost; time that a busy
// machine costs is left out. Linux tells it (/proc/thread-self/schedstat); where it does not,
// elapsed() is zero. About 3 us for both ends. Use it on one thread.
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
