#include "operator/runtime/reconciler.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"

namespace stoker::control {

namespace {

constexpr Duration kSoon = std::chrono::seconds{2};

double in_seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

WorkQueue::WorkQueue(WorkQueueOptions options)
    : options_(options),
      bucket_(options.retries_per_second, options.retry_burst) {}

void WorkQueue::add(const ObjectKey& key, TimePoint now, Priority priority) {
    if (shut_down_) {
        return;
    }
    const auto [at, is_new] = dirty_.try_emplace(key, Dirty{now, priority, turn_});
    Dirty& dirty = at->second;
    const bool rises = !is_new && priority < dirty.priority;
    if (!is_new && !rises) {
        return;
    }
    if (rises) {
        ready_of(dirty.priority).erase(dirty.turn);
        dirty.priority = priority;
        dirty.turn = turn_;
    }
    ++turn_;
    adds_ += is_new ? 1 : 0;
    if (!processing_.contains(key)) {
        ready_of(priority).emplace(dirty.turn, key);
    }
}

void WorkQueue::add_after(const ObjectKey& key, TimePoint due, TimePoint now, Priority priority) {
    if (shut_down_) {
        return;
    }
    if (due <= now) {
        add(key, now, priority);
        return;
    }
    const auto [known, is_new] = due_.try_emplace(key, Due{due, priority});
    if (!is_new) {
        if (known->second.at <= due) {
            return;
        }
        by_due_.erase({known->second.at, key});
        known->second = {due, priority};
    }
    by_due_.emplace(due, key);
}

void WorkQueue::add_rate_limited(const ObjectKey& key, TimePoint now) {
    std::uint32_t& failures = failures_[key];
    // Doubling stops at the cap, before the product could overflow.
    Duration wait = options_.back_off_base;
    for (std::uint32_t i = 0; i < failures && wait < options_.back_off_cap; ++i) {
        wait *= 2;
    }
    failures += failures < UINT32_MAX ? 1 : 0;
    ++retries_;
    wait = std::max(std::min(wait, options_.back_off_cap), bucket_.reserve(now));
    add_after(key, now + wait, now, priority_of(key));
}

void WorkQueue::forget(const ObjectKey& key) {
    failures_.erase(key);
}

void WorkQueue::promote_due(TimePoint now) {
    while (!by_due_.empty() && by_due_.begin()->first <= now) {
        const ObjectKey key = by_due_.begin()->second;
        by_due_.erase(by_due_.begin());
        const auto due = due_.find(key);
        const Priority priority = due->second.priority;
        due_.erase(due);
        add(key, now, priority);
    }
}

std::optional<ObjectKey> WorkQueue::pop(TimePoint now) {
    promote_due(now);
    if (!has_ready()) {
        return std::nullopt;
    }
    Ready& ready = next_ready();
    ObjectKey key = std::move(ready.begin()->second);
    ready.erase(ready.begin());
    const auto dirty = dirty_.find(key);
    queued_ += now - dirty->second.since;
    processing_.emplace(key, Processing{now, dirty->second.priority});
    dirty_.erase(dirty);
    return key;
}

// A flood of normal keys must not starve background keys.
WorkQueue::Ready& WorkQueue::next_ready() {
    constexpr std::uint64_t kBackgroundTurn = 10;
    const bool in_turn = ++pops_ % kBackgroundTurn == 0;
    const bool background = ready_.empty() || (in_turn && !ready_background_.empty());
    return background ? ready_background_ : ready_;
}

void WorkQueue::done(const ObjectKey& key) {
    STOKER_CHECK(processing_.erase(key) == 1, "done() for a key that was not handed out");
    if (const auto dirty = dirty_.find(key); dirty != dirty_.end()) {
        ready_of(dirty->second.priority).emplace(dirty->second.turn, key);
    }
}

std::optional<TimePoint> WorkQueue::processing_since(const ObjectKey& key) const {
    const auto found = processing_.find(key);
    return found == processing_.end() ? std::nullopt : std::optional(found->second.since);
}

Priority WorkQueue::priority_of(const ObjectKey& key) const {
    const auto found = processing_.find(key);
    return found == processing_.end() ? Priority::kNormal : found->second.priority;
}

std::optional<TimePoint> WorkQueue::next_due() const {
    return by_due_.empty() ? std::nullopt : std::optional(by_due_.begin()->first);
}

void WorkQueue::shut_down() {
    shut_down_ = true;
    due_.clear();
    by_due_.clear();
}

bool WorkQueue::is_drained() const {
    return shut_down_ && dirty_.empty() && processing_.empty();
}

WorkQueueCounts WorkQueue::counts(TimePoint now) const {
    WorkQueueCounts counts;
    counts.waiting = dirty_.size();
    counts.background = ready_background_.size();
    counts.delayed = due_.size();
    counts.processing = processing_.size();
    counts.adds = adds_;
    counts.retries = retries_;
    counts.queued = queued_;
    for (const auto& [key, processing] : processing_) {
        counts.longest_processing = std::max(counts.longest_processing, now - processing.since);
        counts.unfinished += now - processing.since;
    }
    return counts;
}

bool is_terminal(ErrorCode code) {
    return code == ErrorCode::kInvalidArgument || code == ErrorCode::kGone;
}

Reconciler::Reconciler(
    std::string name, Function reconcile, const Clock& clock, WorkQueueOptions options)
    : name_(std::move(name)),
      reconcile_(std::move(reconcile)),
      clock_(&clock),
      queue_(options) {}

void Reconciler::add(const ObjectKey& key, Priority priority) {
    const std::lock_guard lock(mutex_);
    queue_.add(key, clock_->now(), priority);
    wake_locked();
}

void Reconciler::add_after(const ObjectKey& key, Duration wait) {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_->now();
    queue_.add_after(key, now + wait, now, Priority::kBackground);
    // No worker needs to be woken: each one checks the time once a second.
}

void Reconciler::wake_locked() {
    ++changes_;
    changed_.notify_all();
}

void Reconciler::work(const std::stop_token& stop) {
    while (const auto key = next(stop)) {
        reconcile(*key);
    }
}

bool Reconciler::step() {
    std::unique_lock lock(mutex_);
    const auto key = pop_locked(clock_->now());
    lock.unlock();
    if (key) {
        reconcile(*key);
    }
    return key.has_value();
}

std::optional<TimePoint> Reconciler::next_due() const {
    const std::lock_guard lock(mutex_);
    return queue_.has_ready() ? std::optional(clock_->now()) : queue_.next_due();
}

void Reconciler::reconcile(const ObjectKey& key) {
    ++active_;
    settle(key, call(key));
    --active_;
}

std::optional<ObjectKey> Reconciler::pop_locked(TimePoint now) {
    const Duration queued = queue_.queued();
    auto key = queue_.pop(now);
    if (key && times_.queued) {
        times_.queued->observe(in_seconds(queue_.queued() - queued));
    }
    return key;
}

std::optional<ObjectKey> Reconciler::next(const std::stop_token& stop) {
    // Bounded, so that the clock is read again soon after a jump (a suspended machine).
    constexpr Duration kLongestNap = std::chrono::seconds{1};
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        const TimePoint now = clock_->now();
        if (auto key = pop_locked(now)) {
            return key;
        }
        if (queue_.is_shut_down() && queue_.counts(now).waiting == 0) {
            return std::nullopt;
        }
        const Duration nap = queue_.next_due().value_or(now + kLongestNap) - now;
        changed_.wait_for(lock, stop, std::min(nap, kLongestNap), [this, seen = changes_] {
            return changes_ != seen;
        });
    }
    return std::nullopt;
}

Result<Reconciled> Reconciler::call(const ObjectKey& key) {
    // The only place that catches library exceptions, so that they do not end the process.
    try {
        return reconcile_(key);
    } catch (const std::exception& error) {
        ++exceptions_;
        return fail(ErrorCode::kInternal, std::string("exception: ") + error.what());
    } catch (...) {
        ++exceptions_;
        return fail(ErrorCode::kInternal, "an exception of an unknown type");
    }
}

void Reconciler::settle(const ObjectKey& key, const Result<Reconciled>& outcome) {
    const bool terminal = !outcome && is_terminal(outcome.error().code);
    ++(outcome ? successes_ : terminal ? terminal_ : errors_);
    if (!outcome && outcome.error().code != ErrorCode::kCancelled) {
        log::warning(
            "reconcile failed",
            {{"controller", name_},
             {"object", to_string(key)},
             {"code", to_string(outcome.error().code)},
             {"error", outcome.error().message},
             {"retries", !terminal}});
    }
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_->now();
    if (outcome && outcome->requeue_after) {
        // A reconciler that asks for another call soon is in the middle of some work: the key keeps
        // its priority.
        const bool soon = *outcome->requeue_after < kSoon;
        queue_.add_after(
            key,
            now + *outcome->requeue_after,
            now,
            soon ? queue_.priority_of(key) : Priority::kBackground);
    }
    if (outcome || terminal) {
        queue_.forget(key);
    } else {
        queue_.add_rate_limited(key, now);
    }
    if (times_.worked) {
        times_.worked->observe(in_seconds(now - *queue_.processing_since(key)));
    }
    queue_.done(key);
    wake_locked();
}

bool Reconciler::drain(TimePoint until) {
    std::unique_lock lock(mutex_);
    queue_.shut_down();
    wake_locked();
    while (!queue_.is_drained()) {
        const TimePoint now = clock_->now();
        if (now >= until) {
            return false;
        }
        changed_.wait_for(lock, until - now);
    }
    return true;
}

ReconcilerCounts Reconciler::counts() const {
    return {successes_, errors_, terminal_, exceptions_, active_};
}

WorkQueueCounts Reconciler::queue_counts() const {
    const std::lock_guard lock(mutex_);
    return queue_.counts(clock_->now());
}

}  // namespace stoker::control
