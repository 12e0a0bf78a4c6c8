#include "sidecar/device/blocked_time.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace stoker::sidecar {

namespace {

Duration clock_time(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// "running_ns runnable_ns timeslices". The first number lags by up to a tick, so it is unused.
bool read_runnable(Duration& out) {
    thread_local const UniqueFd file{::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    std::array<char, 96> text{};
    const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
    if (size <= 0) {
        return false;
    }
    const std::string_view words{text.data(), static_cast<std::size_t>(size)};
    const std::size_t space = words.find(' ');
    if (space == std::string_view::npos) {
        return false;
    }
    std::int64_t nanoseconds = 0;
    const auto parsed =
        std::from_chars(words.data() + space + 1, words.data() + words.size(), nanoseconds);
    out = Duration{nanoseconds};
    return parsed.ec == std::errc{};
}

}  // namespace

BlockedTime::BlockedTime()
    : begin_(read()) {}

Duration BlockedTime::elapsed() const {
    const Reading end = read();
    if (!begin_.known || !end.known) {
        return {};
    }
    const Duration awake = (end.running - begin_.running) + (end.runnable - begin_.runnable);
    return std::max(end.wall - begin_.wall - awake, Duration{});
}

BlockedTime::Reading BlockedTime::read() {
    Reading reading;
    reading.known = read_runnable(reading.runnable);
    reading.running = clock_time(CLOCK_THREAD_CPUTIME_ID);
    reading.wall = clock_time(CLOCK_MONOTONIC);
    return reading;
}

}  // namespace stoker::sidecar
