#include "common/runtime/signals.h"

#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

namespace stoker {
namespace {

TEST(StopSignals, TurnsSigtermIntoACallOnTheLoop) {
    const SystemClock clock;
    EventLoop loop{clock};
    int got = 0;
    const StopSignals signals{loop, [&](int signal) {
                                  got = signal;
                                  loop.stop();
                              }};
    ::kill(::getpid(), SIGTERM);
    loop.run();
    EXPECT_EQ(got, SIGTERM);
}

}  // namespace
}  // namespace stoker
