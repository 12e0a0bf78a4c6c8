#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/meta.h"
#include "operator/runtime/work_queue.h"

namespace stoker::control {

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
// exception counts as an error.
class Reconciler {
public:
    using Function =
        std::function<Result<Reconciled>(const ObjectKey& key, const std::stop_token& stop)>;

    // `clock` must outlive it.
    Reconciler(
        std::string name, Function reconcile, const Clock& clock, WorkQueueOptions options = {});

    // Thread-safe; any handler may call it.
    void add(const ObjectKey& key, Urgency urgency = Urgency::kNormal) { queue_.add(key, urgency); }

    void add_after(const ObjectKey& key, Duration delay) { queue_.add_after(key, delay); }

    // Observes queueing and processing times; call it before work().
    void observe(WorkQueueTimes times) { queue_.observe(std::move(times)); }

    // Works until a stop is requested or the queue is shut down and empty. Run it on one thread per
    // worker.
    void work(const std::stop_token& stop);

    // Accepts no new keys; lets the workers finish their current ones. False if `until` came first.
    bool drain(TimePoint until);

    [[nodiscard]] const std::string& name() const { return name_; }

    [[nodiscard]] ReconcilerCounts counts() const;

    [[nodiscard]] WorkQueueCounts queue_counts() const { return queue_.counts(); }

private:
    Result<Reconciled> call(const ObjectKey& key, const std::stop_token& stop);
    void settle(const ObjectKey& key, const Result<Reconciled>& outcome);

    std::string name_;
    Function reconcile_;
    SharedWorkQueue queue_;
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
