#include "sidecar/service/throttle.h"

#include <utility>

namespace stoker::sidecar {

Throttle::Throttle(EventLoop& loop, double share)
    : loop_(loop),
      share_(share),
      timer_(loop) {}

void Throttle::set_share(double share) {
    share_.set_share(share, loop_.now());
}

void Throttle::enter() {
    if (depth_++ == 0) {
        counted_to_ = loop_.now();
    }
}

void Throttle::leave() {
    account();
    --depth_;
}

void Throttle::spend(Duration time) {
    share_.spend(time, loop_.now());
}

bool Throttle::is_spent() {
    account();
    return share_.is_spent(loop_.now());
}

void Throttle::account() {
    if (depth_ > 0) {
        const TimePoint now = loop_.now();
        share_.spend(now - std::exchange(counted_to_, now), now);
    }
}

void Throttle::on_resume(std::function<void()> go_on) {
    waiting_.push_back(std::move(go_on));
    wait();
}

void Throttle::wait() {
    if (!std::exchange(is_timed_, true)) {
        timer_.run_at(share_.resumes_at(loop_.now()), [this] { resume(); });
    }
}

// Calls those waiting. One that then waits again queues behind those still waiting.
void Throttle::resume() {
    is_timed_ = false;
    for (std::size_t left = waiting_.size(); left > 0 && !is_spent(); --left) {
        const auto go_on = std::move(waiting_.front());
        waiting_.pop_front();
        go_on();
    }
    if (!waiting_.empty()) {
        wait();
    }
}

}  // namespace stoker::sidecar
