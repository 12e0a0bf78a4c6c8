#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "operator/kube/transport.h"
#include "operator/runtime/event_series.h"

namespace stoker::control {

struct EventRecorderOptions {
    EventReporter reporter;
    std::size_t queue_max = 1000;
    std::uint32_t tries = 12;
    Duration retry_pause = std::chrono::seconds{10};  // ±25 %
    Duration flush_pause = std::chrono::minutes{1};
    EventSeriesLimits series{};
};

// Writes Events without blocking a controller: record() queues, one thread in run() folds and
// writes. A full queue drops events and counts them. Emit an event only after its change was
// written.
class EventRecorder {
public:
    // `transport` and `clock` must outlive it.
    EventRecorder(
        ApiTransport& transport,
        EventRecorderOptions options,
        const Clock& clock,
        std::uint64_t seed);

    // Thread-safe, never blocks.
    void record(EventNote note);

    // Writes until a stop is requested; then writes the queued events, one try each, and returns.
    void run(const std::stop_token& stop);

    // Events dropped for a full queue, for an object with too many events, or after all tries.
    // Thread-safe.
    [[nodiscard]] std::uint64_t dropped() const;

private:
    void take_in(const std::stop_token& stop, bool& stopping);
    void write(const EventWrite& write, const std::stop_token& stop, std::uint32_t tries);
    bool try_write(const EventWrite& write);

    ApiTransport* transport_;
    EventRecorderOptions options_;
    const Clock* clock_;
    Prng prng_;
    EventSeries series_;
    std::atomic<std::uint64_t> too_loud_{0};  // what series_ dropped
    mutable std::mutex mutex_;                // guards the members below
    std::condition_variable_any changed_;
    std::deque<EventNote> queue_;
    std::uint64_t dropped_ = 0;
};

}  // namespace stoker::control
