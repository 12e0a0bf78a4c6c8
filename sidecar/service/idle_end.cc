#include "sidecar/service/idle_end.h"

#include <chrono>
#include <utility>

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::seconds{1};

}  // namespace

IdleEnd::IdleEnd(EventLoop& loop, const Sidecar& sidecar, std::function<void()> end)
    : loop_(loop),
      sidecar_(sidecar),
      end_(std::move(end)),
      watch_(sidecar.config().end_when_idle, loop.now()),
      timer_(loop) {
    if (sidecar.config().end_when_idle > Duration{}) {
        look();
    }
}

void IdleEnd::look() {
    if (watch_.is_over(loop_.now(), sidecar_.is_in_use())) {
        end_();
        return;
    }
    timer_.run_in(kLookInterval, [this] { look(); });
}

}  // namespace stoker::sidecar
