#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// How long the two halves of one fetch took.
struct FetchTimes {
    Duration origin{};  // from the request until its bytes had arrived
    Duration store{};   // from then until they could be read here, waiting included
};

// Decides when the cache is worse than no cache, and steps aside (design 3.2, rule 5: never slower
// than bypass): a trainer that reads the origin itself waits for the first half of a fetch only. A
// processor that is busy makes the second half long as well, and then stepping aside helps nobody,
// so a long second half is not enough: the writers must have been kept waiting by the disk itself.
//
// It looks at windows of time. A window is slow when in it
//   - the median fetch took `slower` times as long to store as to get, at least `store_min`, and
//   - the writers stood still in the disk for `blocked_share` of the time (DeviceCounters::
//     write_blocked: neither running nor waiting for a processor).
// After `slow_windows` slow ones in a row it steps aside for `pause_min`, then tries again. If the
// first window of the trial is slow too, the pause doubles, up to `pause_max`; a good window
// forgets everything. Without evidence (few fetches) nothing changes.
//
// Pure: no clock inside. Not thread-safe.
class BypassController {
public:
    struct Limits {
        Duration window = std::chrono::seconds{5};  // zero: never steps aside
        int slow_windows = 3;
        std::size_t fetches_min = 16;  // a window with fewer goes on until it has them
        double slower = 2;
        Duration store_min = std::chrono::milliseconds{10};
        double blocked_share = 0.6;
        Duration pause_min = std::chrono::seconds{30};
        Duration pause_max = std::chrono::minutes{10};
    };

    // What the last full window was like.
    struct Finding {
        Duration origin{};  // medians
        Duration store{};
        double blocked_share = 0;

        bool operator==(const Finding&) const = default;
    };

    explicit BypassController(Limits limits)
        : limits_(limits) {}

    void on_stored(const FetchTimes& times);

    // Call it about once a second. `write_blocked` grows: the writers' time in the disk so far.
    void step(TimePoint now, Duration write_blocked);

    [[nodiscard]] bool is_aside() const { return aside_until_ != TimePoint{}; }

    [[nodiscard]] const Finding& finding() const { return finding_; }

private:
    void begin_window(TimePoint now, Duration write_blocked);
    [[nodiscard]] bool is_slow() const;
    void judge(TimePoint now);

    Limits limits_;
    std::vector<Duration> origin_;  // of this window's fetches, so many as are enough
    std::vector<Duration> store_;
    bool begun_ = false;
    TimePoint begun_at_{};
    Duration blocked_at_begin_{};
    Finding finding_;
    int slow_in_a_row_ = 0;
    Duration pause_{};         // of the last time aside; zero: forgotten
    TimePoint aside_until_{};  // the epoch: not aside
};

}  // namespace stoker::sidecar
