#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"
#include "common/base/token_bucket.h"
#include "common/metrics/metrics.h"
#include "operator/api/meta.h"

namespace stoker::control {

struct WorkQueueOptions {
    Duration back_off_base =
        std::chrono::milliseconds{5};  // of one key, doubled with every failure
    Duration back_off_cap = std::chrono::seconds{1000};
    double retries_per_second = 10;  // of all keys together
    double retry_burst = 100;
};

// Keys of the first list and of resyncs come second: after a restart fresh events overtake
// thousands of old objects.
enum class Urgency : std::uint8_t { kNormal, kLow };

struct WorkQueueCounts {
    std::size_t waiting = 0;     // ready to be worked on
    std::size_t delayed = 0;     // will be ready later
    std::size_t processing = 0;  // handed out and not done
    std::uint64_t adds = 0;      // totals from here on
    std::uint64_t retries = 0;
    Duration queued{};  // time that keys waited, summed over what was handed out
    std::uint64_t handed_out = 0;
    Duration longest_processing{};  // of what is handed out now
    Duration unfinished{};          // time spent so far on what is handed out now, summed
};

// What to work on next, as client-go's rate-limited queue has it. One key is never handed out twice
// at once; a key that is added while it is worked on is handed out again after done(); a key that
// waits already is not added a second time. So an event is never lost, and ten events are one piece
// of work. Pure: time is passed in. Not thread-safe.
class WorkQueue {
public:
    explicit WorkQueue(WorkQueueOptions options = {});

    void add(const ObjectKey& key, TimePoint now, Urgency urgency = Urgency::kNormal);
    // Not before `due`. The earlier of two such wishes for a key counts.
    void add_after(const ObjectKey& key, TimePoint due, TimePoint now);
    // After a failure: waits as long as this key's failures and the global rate demand, whichever
    // is longer.
    void add_rate_limited(const ObjectKey& key, TimePoint now);
    // The key did well: its failures are forgotten.
    void forget(const ObjectKey& key);
    [[nodiscard]] std::uint32_t failures(const ObjectKey& key) const;

    // The next key to work on; done() must follow. nullopt: nothing is ready now.
    std::optional<ObjectKey> pop(TimePoint now);
    void done(const ObjectKey& key);

    // Since when a key is handed out; nullopt: it is not.
    [[nodiscard]] std::optional<TimePoint> processing_since(const ObjectKey& key) const;

    // Time that keys waited, summed over what was handed out.
    [[nodiscard]] Duration queued() const { return queued_; }

    // When the next delayed key becomes ready.
    [[nodiscard]] std::optional<TimePoint> next_due() const;

    // From now on nothing is added, and what is delayed is dropped; what waits is still handed out.
    void shut_down();

    [[nodiscard]] bool is_shut_down() const { return shut_down_; }

    // Shut down, and nothing waits or is worked on.
    [[nodiscard]] bool is_drained() const;

    [[nodiscard]] WorkQueueCounts counts(TimePoint now) const;

private:
    struct Dirty {
        Urgency urgency = Urgency::kNormal;
        TimePoint since{};
    };

    void promote_due(TimePoint now);
    std::deque<ObjectKey>& line_of(Urgency urgency);
    std::optional<ObjectKey> take_from(std::deque<ObjectKey>& line, Urgency urgency);

    WorkQueueOptions options_;
    TokenBucket bucket_;
    std::deque<ObjectKey> normal_;  // may hold keys that moved to the other line or were handed out
    std::deque<ObjectKey> low_;
    std::map<ObjectKey, Dirty> dirty_;
    std::map<ObjectKey, TimePoint> processing_;  // since when
    std::map<ObjectKey, TimePoint> due_;
    std::set<std::pair<TimePoint, ObjectKey>> by_due_;
    std::map<ObjectKey, std::uint32_t> failures_;
    std::uint64_t adds_ = 0;
    std::uint64_t retries_ = 0;
    Duration queued_{};
    std::uint64_t handed_out_ = 0;
    bool shut_down_ = false;
};

// How long keys waited and were worked on, in seconds. Both or neither are set.
struct WorkQueueTimes {
    std::shared_ptr<metrics::Histogram> queued;
    std::shared_ptr<metrics::Histogram> worked;
};

// A WorkQueue for many threads, whose pop() waits. `clock` must outlive it.
class SharedWorkQueue {
public:
    explicit SharedWorkQueue(const Clock& clock, WorkQueueOptions options = {});

    // Observes from now on; before there are workers.
    void observe(WorkQueueTimes times);

    void add(const ObjectKey& key, Urgency urgency = Urgency::kNormal);
    void add_after(const ObjectKey& key, Duration delay);
    void add_rate_limited(const ObjectKey& key);
    void forget(const ObjectKey& key);

    // Waits for work. nullopt: a stop was requested, or the queue is shut down and empty.
    std::optional<ObjectKey> pop(const std::stop_token& stop);
    void done(const ObjectKey& key);

    void shut_down();
    // Waits until everything that was handed out is done and nothing waits; false when `until` came
    // first.
    bool wait_drained(TimePoint until);

    [[nodiscard]] WorkQueueCounts counts() const;

private:
    void wake();
    std::optional<ObjectKey> pop_now(TimePoint now);

    const Clock* clock_;
    mutable std::mutex mutex_;  // guards what stands below
    std::condition_variable_any changed_;
    std::uint64_t changes_ = 0;
    WorkQueue queue_;
    WorkQueueTimes times_;
};

}  // namespace stoker::control
