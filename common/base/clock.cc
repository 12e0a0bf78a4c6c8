#include "common/base/clock.h"

#include <ctime>

namespace stoker {

namespace {

Duration read_clock(clockid_t id) {
    timespec spec{};
    clock_gettime(id, &spec);
    return std::chrono::seconds{spec.tv_sec} + std::chrono::nanoseconds{spec.tv_nsec};
}

}  // namespace

TimePoint SystemClock::now() const {
    return TimePoint{read_clock(CLOCK_BOOTTIME)};
}

WallTime SystemClock::wall_now() const {
    return WallTime{read_clock(CLOCK_REALTIME)};
}

}  // namespace stoker
