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

// What a reconciler wants next: to be called again after a while, or (nullopt) when something
// changes.
struct Reconciled {
    std::optional<Duration> requeue_after;
};

struct ReconcilerCounts {
    std::uint64_t successes = 0;
    std::uint64_t errors = 0;      // retried
    std::uint64_t terminal = 0;    // errors that retrying cannot mend: not retried
    std::uint64_t exceptions = 0;  // among the errors
    std::uint64_t active = 0;      // running now
};

// Calls a function for keys from a queue until the world is as it should be.
//
// The function is level-triggered: it is told a key, never why. One key is in one call at a time;
// different keys run side by side, one a worker. What it returns decides: a value forgets the key's
// failures and may ask to be called again; an error is retried with growing waits, unless
// is_terminal(); a thrown exception counts as an error.
class Reconciler {
public:
    using Function =
        std::function<Result<Reconciled>(const ObjectKey& key, const std::stop_token& stop)>;

    // `clock` must outlive it.
    Reconciler(
        std::string name, Function reconcile, const Clock& clock, WorkQueueOptions options = {});

    // Thread-safe; from any handler.
    void add(const ObjectKey& key, Urgency urgency = Urgency::kNormal) { queue_.add(key, urgency); }

    void add_after(const ObjectKey& key, Duration delay) { queue_.add_after(key, delay); }

    // Observes how long keys wait and are worked on; before work().
    void observe(WorkQueueTimes times) { queue_.observe(std::move(times)); }

    // Works until a stop is requested or the queue is shut down and empty. Run it on as many
    // threads as there should be workers.
    void work(const std::stop_token& stop);

    // Takes nothing new on; lets the workers finish what they do. False when `until` came first.
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

// Errors that the next try would meet again: kInvalidArgument (the server refused what we wrote: a
// bug of ours or of the user's spec) and kGone (the namespace is going).
bool is_terminal(ErrorCode code);

}  // namespace stoker::control
