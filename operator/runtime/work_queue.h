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
    double retries_per_second = 10;  // total for all keys
    double retry_burst = 100;
};

// Keys of the first list and of resyncs have low urgency: after a restart, new events overtake
// thousands of old objects.
enum class Urgency : std::uint8_t { kNormal, kLow };

struct WorkQueueCounts {
    std::size_t waiting = 0;     // ready to be worked on
    std::size_t delayed = 0;     // will be ready later
    std::size_t processing = 0;  // popped and not done
    std::uint64_t adds = 0;      // total
    std::uint64_t retries = 0;
    Duration queued{};  // summed waiting time of popped keys
    std::uint64_t handed_out = 0;
    Duration longest_processing{};  // of the keys in progress
    Duration unfinished{};          // summed time of the keys in progress
};

// The next keys to reconcile, as in client-go's rate-limited queue. A key is never in progress
// twice; a key that is added while in progress is queued again after done(); a waiting key is not
// added a second time. So no event is lost, and ten events cause one reconciliation. Pure: time is
// an argument. Not thread-safe.
class WorkQueue {
public:
    explicit WorkQueue(WorkQueueOptions options = {});

    void add(const ObjectKey& key, TimePoint now, Urgency urgency = Urgency::kNormal);
    // Queues the key at `due`; the earlier of two times counts.
    void add_after(const ObjectKey& key, TimePoint due, TimePoint now);
    // Queues the key after a failure: waits for its own back-off or the global rate, whichever is
    // longer.
    void add_rate_limited(const ObjectKey& key, TimePoint now);
    // Clears the key's failures after a success.
    void forget(const ObjectKey& key);
    [[nodiscard]] std::uint32_t failures(const ObjectKey& key) const;

    // The next key; the caller must call done(). nullopt: none is ready now.
    std::optional<ObjectKey> pop(TimePoint now);
    void done(const ObjectKey& key);

    // The start of the key's processing; nullopt: not in progress.
    [[nodiscard]] std::optional<TimePoint> processing_since(const ObjectKey& key) const;

    // Summed waiting time of popped keys.
    [[nodiscard]] Duration queued() const { return queued_; }

    // Due time of the next delayed key.
    [[nodiscard]] std::optional<TimePoint> next_due() const;

    // Rejects new keys and drops delayed ones; waiting keys are still popped.
    void shut_down();

    [[nodiscard]] bool is_shut_down() const { return shut_down_; }

    // True after shut_down() when no key waits or is in progress.
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
    std::deque<ObjectKey> normal_;  // may contain keys that moved to the other queue or were popped
    std::deque<ObjectKey> low_;
    std::map<ObjectKey, Dirty> dirty_;
    std::map<ObjectKey, TimePoint> processing_;  // start times
    std::map<ObjectKey, TimePoint> due_;
    std::set<std::pair<TimePoint, ObjectKey>> by_due_;
    std::map<ObjectKey, std::uint32_t> failures_;
    std::uint64_t adds_ = 0;
    std::uint64_t retries_ = 0;
    Duration queued_{};
    std::uint64_t handed_out_ = 0;
    bool shut_down_ = false;
};

// Observers of waiting and processing times, in seconds. Both or neither are set.
struct WorkQueueTimes {
    std::shared_ptr<metrics::Histogram> queued;
    std::shared_ptr<metrics::Histogram> worked;
};

// A WorkQueue for several threads; pop() blocks. `clock` must outlive it.
class SharedWorkQueue {
public:
    explicit SharedWorkQueue(const Clock& clock, WorkQueueOptions options = {});

    // Sets the observers; call it before workers start.
    void observe(WorkQueueTimes times);

    void add(const ObjectKey& key, Urgency urgency = Urgency::kNormal);
    void add_after(const ObjectKey& key, Duration delay);
    void add_rate_limited(const ObjectKey& key);
    void forget(const ObjectKey& key);

    // Waits for a key. nullopt: a stop was requested, or the queue is shut down and empty.
    std::optional<ObjectKey> pop(const std::stop_token& stop);
    void done(const ObjectKey& key);

    void shut_down();
    // Waits until no key waits or is in progress; false if `until` came first.
    bool wait_drained(TimePoint until);

    [[nodiscard]] WorkQueueCounts counts() const;

private:
    void wake();
    std::optional<ObjectKey> pop_now(TimePoint now);

    const Clock* clock_;
    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable_any changed_;
    std::uint64_t changes_ = 0;
    WorkQueue queue_;
    WorkQueueTimes times_;
};

}  // namespace stoker::control
