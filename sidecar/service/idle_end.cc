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
      watch_(sidecar.config().end_when_idle, loop.now()) {
    if (sidecar.config().end_when_idle > Duration{}) {
        look();
    }
}

IdleEnd::~IdleEnd() {
    loop_.cancel(timer_);
}

void IdleEnd::look() {
    const TimePoint now = loop_.now();
    if (watch_.is_over(now, sidecar_.is_in_use())) {
        end_();
        return;
    }
    timer_ = loop_.run_at(now + kLookInterval, [this] { look(); });
}

}  // namespace stoker::sidecar
