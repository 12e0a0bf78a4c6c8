#pragma once

#include <functional>

#include "common/runtime/loop_tasks.h"
#include "sidecar/core/idle_watch.h"
#include "sidecar/service/sidecar.h"

namespace stoker::sidecar {

// Ends a sidecar that nobody has used for SidecarConfig::end_when_idle, where that is not zero.
// Looks every second. Belongs to the loop's thread; the loop and the sidecar outlive it.
class IdleEnd {
public:
    IdleEnd(EventLoop& loop, const Sidecar& sidecar, std::function<void()> end);
    IdleEnd(const IdleEnd&) = delete;
    IdleEnd& operator=(const IdleEnd&) = delete;

private:
    void look();

    EventLoop& loop_;
    const Sidecar& sidecar_;
    std::function<void()> end_;
    IdleWatch watch_;
    LoopTimer timer_;
};

}  // namespace stoker::sidecar
