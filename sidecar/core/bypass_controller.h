#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Durations of the two halves of one fetch.
struct FetchTimes {
    Duration origin{};  // from the request until the origin's bytes arrive
    Duration store{};   // from their arrival until clients can read them, queueing included
};

// Decides when the cache is slower than no cache and must be bypassed (design 3.2, rule 5: never
// slower than bypass). A trainer that reads the origin itself waits only for the first half of a
// fetch. A busy processor also lengthens the second half, and a bypass would not help then; so the
// writers must also have been blocked by the disk.
//
// Measures in windows of time. A window is slow if
//   - the median fetch took `slower` times as long to store as to get, and at least `store_min`,
//     and
//   - the writers were blocked in the disk for `blocked_share` of the time
//     After `slow_windows` slow windows in a row it bypasses the cache for `pause_min`, then tries
//     the cache again. If the first window of the trial is slow too, the pause doubles, up to
//     `pause_max`; a window that is not slow resets the pause. Few fetches are no evidence and
//     change nothing.
//
// Pure: no clock inside. Not thread-safe.
class BypassController {
public:
    struct Limits {
        Duration window = std::chrono::seconds{5};  // zero: never bypasses
        int slow_windows = 3;
        std::size_t fetches_min = 16;  // a window with fewer is extended
        double slower = 2;
        Duration store_min = std::chrono::milliseconds{10};
        double blocked_share = 0.6;
        Duration pause_min = std::chrono::seconds{30};
        Duration pause_max = std::chrono::minutes{10};
    };

    // Measurements of the last full window.
    struct Finding {
        Duration origin{};  // median durations of the window's fetches
        Duration store{};
        double blocked_share = 0;

        bool operator==(const Finding&) const = default;
    };

    explicit BypassController(Limits limits)
        : limits_(limits) {}

    void on_stored(const FetchTimes& times);

    // Call about once a second. `write_blocked`: the writers' total time blocked in the disk so
    // far.
    void step(TimePoint now, Duration write_blocked);

    [[nodiscard]] bool is_aside() const { return aside_until_ != TimePoint{}; }

    [[nodiscard]] const Finding& finding() const { return finding_; }

private:
    void begin_window(TimePoint now, Duration write_blocked);
    [[nodiscard]] bool is_slow() const;
    void judge(TimePoint now);

    Limits limits_;
    std::vector<Duration> origin_;  // of this window's fetches, bounded
    std::vector<Duration> store_;
    bool begun_ = false;
    TimePoint begun_at_{};
    Duration blocked_at_begin_{};
    Finding finding_;
    int slow_in_a_row_ = 0;
    Duration pause_{};         // length of the last pause; zero: reset
    TimePoint aside_until_{};  // end of the bypass; the epoch: not bypassed
};

}  // namespace stoker::sidecar
