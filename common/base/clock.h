#pragma once

#include <chrono>

namespace stoker {

// Two kinds of time, never mixed. Monotonic time measures intervals and deadlines and continues
// while the machine is suspended (CLOCK_BOOTTIME), so that a lease or a grant cannot outlive a
// pause unnoticed; its zero is arbitrary. Wall time is for people and for time stamps on the wire.
struct BootClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;
};

using TimePoint = BootClock::time_point;
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

// The interface to time. Core code takes `now` as an argument; only event loops and I/O hold a
// Clock. Thread-safe: any thread may call any method.
class Clock {
public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual TimePoint now() const = 0;
    [[nodiscard]] virtual WallTime wall_now() const = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
public:
    [[nodiscard]] TimePoint now() const override;
    [[nodiscard]] WallTime wall_now() const override;
};

}  // namespace stoker
