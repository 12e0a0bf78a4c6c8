#include "common/runtime/accept_loop.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include "common/log/log.h"

namespace stoker {

namespace {

constexpr int kAcceptsPerTurn = 16;

}  // namespace

AcceptLoop::AcceptLoop(EventLoop& loop, UniqueFd socket, std::string name, OnAccept on_accept)
    : loop_(loop),
      socket_(std::move(socket)),
      name_(std::move(name)),
      on_accept_(std::move(on_accept)),
      resume_timer_(loop) {
    loop_.watch(socket_.get(), [this](IoReady) { accept_some(); });
}

AcceptLoop::~AcceptLoop() {
    loop_.forget(socket_.get());
}

void AcceptLoop::set_paused(bool paused) {
    paused_ = paused;
    loop_.set_interest(socket_.get(), !paused, false);
}

void AcceptLoop::accept_some() {
    for (int i = 0; i < kAcceptsPerTurn && !paused_; ++i) {
        UniqueFd accepted{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (!accepted.valid()) {
            if (AcceptBackoff::is_exhausted(errno)) {
                back_off(errno);
            }
            return;  // no connection waits, or one was closed already: the next turn retries
        }
        backoff_.accepted();
        on_accept_(std::move(accepted));
    }
}

void AcceptLoop::back_off(int error_number) {
    const auto advice = backoff_.failed(loop_.now());
    if (advice.log) {
        log::warning(
            "connections cannot be accepted for now",
            {{"socket", name_},
             {"error", std::strerror(error_number)},
             {"failuresNotLogged", advice.silent}});
    }
    loop_.set_interest(socket_.get(), false, false);
    resume_timer_.run_in(advice.pause, [this] { set_paused(paused_); });
}

}  // namespace stoker
