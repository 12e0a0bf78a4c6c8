#include "common/runtime/signals.h"

#include <csignal>
#include <utility>

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/check.h"

namespace stoker {

StopSignals::StopSignals(EventLoop& loop, std::function<void(int signal)> on_stop)
    : loop_(loop) {
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    fd_.reset(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
    STOKER_CHECK(fd_.valid(), "no descriptor left for signals");
    loop_.watch(fd_.get(), [this, on_stop = std::move(on_stop)](IoReady) {
        signalfd_siginfo info{};
        if (::read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
            on_stop(static_cast<int>(info.ssi_signo));
        }
    });
}

StopSignals::~StopSignals() {
    loop_.forget(fd_.get());
}

}  // namespace stoker
