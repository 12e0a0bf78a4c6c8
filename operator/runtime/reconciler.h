#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"
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

// Which keys come first. Background: reconciliations that nobody waits for, such as those after a
// sidecar's report, or those of all objects after a change of a pool.
enum class Priority : std::uint8_t { kNormal, kBackground };

struct WorkQueueCounts {
    std::size_t waiting = 0;     // ready to be worked on
    std::size_t background = 0;  // part of `waiting` with Priority::kBackground
    std::size_t delayed = 0;     // will be ready later
    std::size_t processing = 0;  // popped and not done
    std::uint64_t adds = 0;      // total
    std::uint64_t retries = 0;
    Duration queued{};              // summed waiting time of popped keys
    Duration longest_processing{};  // of the keys in progress
    Duration unfinished{};          // summed time of the keys in progress
};

// The next keys to reconcile, as in client-go's rate-limited queue. A key is never in progress
// twice; a key that is added while in progress is queued again after done(); a waiting key is not
// added a second time. So no event is lost, and ten events cause one reconciliation.
//
// Keys of normal priority come first, in order of arrival; every tenth key is a background key, if
// one waits. The higher of two priorities of one key counts. Pure: time is an argument. Not
// thread-safe.
class WorkQueue {
public:
    explicit WorkQueue(WorkQueueOptions options = {});

    void add(const ObjectKey& key, TimePoint now, Priority priority = Priority::kNormal);
    // Queues the key at `due`; the earlier of two times counts, with its priority.
    void add_after(
        const ObjectKey& key, TimePoint due, TimePoint now, Priority priority = Priority::kNormal);
    // Queues the key after a failure: waits for its own back-off or the global rate, whichever is
    // longer.
    void add_rate_limited(const ObjectKey& key, TimePoint now);
    // Clears the key's failures after a success.
    void forget(const ObjectKey& key);

    // The next key; the caller must call done(). nullopt: none is ready now.
    std::optional<ObjectKey> pop(TimePoint now);
    void done(const ObjectKey& key);

    // The start of the key's processing; nullopt: not in progress.
    [[nodiscard]] std::optional<TimePoint> processing_since(const ObjectKey& key) const;

    // The priority that the key in progress had; kNormal: not in progress.
    [[nodiscard]] Priority priority_of(const ObjectKey& key) const;

    // Total waiting time of the keys popped so far.
    [[nodiscard]] Duration queued() const { return queued_; }

    // Whether pop() would return a key now, even before next_due().
    [[nodiscard]] bool has_ready() const { return !ready_.empty() || !ready_background_.empty(); }

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
        TimePoint since;
        Priority priority = Priority::kNormal;
        std::uint64_t turn = 0;  // number of the first add() with this priority
    };

    struct Processing {
        TimePoint since;
        Priority priority = Priority::kNormal;
    };

    struct Due {
        TimePoint at;
        Priority priority = Priority::kNormal;
    };

    using Ready = std::map<std::uint64_t, ObjectKey>;  // by turn

    Ready& ready_of(Priority priority) {
        return priority == Priority::kNormal ? ready_ : ready_background_;
    }

    Ready& next_ready();
    void promote_due(TimePoint now);

    WorkQueueOptions options_;
    TokenBucket bucket_;
    Ready ready_;                       // the keys of dirty_ that are not in progress
    Ready ready_background_;            // as ready_, for Priority::kBackground
    std::map<ObjectKey, Dirty> dirty_;  // times of their first add()
    std::map<ObjectKey, Processing> processing_;
    std::map<ObjectKey, Due> due_;
    std::set<std::pair<TimePoint, ObjectKey>> by_due_;
    std::map<ObjectKey, std::uint32_t> failures_;
    std::uint64_t turn_ = 0;
    std::uint64_t pops_ = 0;
    std::uint64_t adds_ = 0;
    std::uint64_t retries_ = 0;
    Duration queued_{};
    bool shut_down_ = false;
};

// Histograms of waiting and processing times, in seconds. Either both are set or neither.
struct WorkQueueTimes {
    std::shared_ptr<metrics::Histogram> queued;
    std::shared_ptr<metrics::Histogram> worked;
};

// The next call of a reconciler: after a while, or (nullopt) at the next change.
struct Reconciled {
    std::optional<Duration> requeue_after;
};

struct ReconcilerCounts {
    std::uint64_t successes = 0;
    std::uint64_t errors = 0;      // retried
    std::uint64_t terminal = 0;    // errors that a retry cannot fix: not retried
    std::uint64_t exceptions = 0;  // among the errors
    std::uint64_t active = 0;      // running now
};

// Calls a function for keys from a queue until the observed state matches the desired one.
//
// The function is level-triggered: it gets a key, never a cause. One key is in one call at a time;
// different keys run in parallel, one per worker. A returned value clears the key's failures and
// may request another call; an error is retried with growing waits, unless is_terminal(); an
// exception counts as an error. Thread-safe.
class Reconciler {
public:
    using Function = std::function<Result<Reconciled>(const ObjectKey& key)>;

    // `clock` must outlive it.
    Reconciler(
        std::string name, Function reconcile, const Clock& clock, WorkQueueOptions options = {});

    // May be called from any thread, also while a key is being reconciled.
    void add(const ObjectKey& key, Priority priority = Priority::kNormal);

    // As add() after `wait`, with background priority; the earlier of two times counts.
    void add_after(const ObjectKey& key, Duration wait);

    // Observes queueing and processing times; call it before work().
    void observe(WorkQueueTimes times) { times_ = std::move(times); }

    // Works until a stop is requested or the queue is drained. Run it on one thread per worker.
    void work(const std::stop_token& stop);

    // Works on the next key that is ready now, on the caller's thread. False: none is ready.
    bool step();

    // When step() has work: now or earlier while a key is ready. nullopt: not before an add().
    [[nodiscard]] std::optional<TimePoint> next_due() const;

    // Accepts no new keys; lets the workers finish their current ones. False if `until` came first.
    bool drain(TimePoint until);

    [[nodiscard]] const std::string& name() const { return name_; }

    [[nodiscard]] ReconcilerCounts counts() const;

    [[nodiscard]] WorkQueueCounts queue_counts() const;

private:
    // Waits for a key. nullopt: a stop was requested, or the queue is shut down and empty.
    std::optional<ObjectKey> next(const std::stop_token& stop);
    std::optional<ObjectKey> pop_locked(TimePoint now);
    void reconcile(const ObjectKey& key);
    Result<Reconciled> call(const ObjectKey& key);
    void settle(const ObjectKey& key, const Result<Reconciled>& outcome);
    void wake_locked();

    std::string name_;
    Function reconcile_;
    const Clock* clock_;
    WorkQueueTimes times_;
    mutable std::mutex mutex_;  // guards the members up to `changes_`
    std::condition_variable_any changed_;
    WorkQueue queue_;
    std::uint64_t changes_ = 0;
    std::atomic<std::uint64_t> successes_{0};
    std::atomic<std::uint64_t> errors_{0};
    std::atomic<std::uint64_t> terminal_{0};
    std::atomic<std::uint64_t> exceptions_{0};
    std::atomic<std::uint64_t> active_{0};
};

// Errors that a retry would repeat: kInvalidArgument (the server refused our request: our bug or a
// wrong spec) and kGone (the namespace terminates).
bool is_terminal(ErrorCode code);

}  // namespace stoker::control
