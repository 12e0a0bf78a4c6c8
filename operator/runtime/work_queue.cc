#include "operator/runtime/work_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"

namespace stoker::control {

WorkQueue::WorkQueue(WorkQueueOptions options)
    : options_(options),
      bucket_(options.retries_per_second, options.retry_burst) {}

std::deque<ObjectKey>& WorkQueue::line_of(Urgency urgency) {
    return urgency == Urgency::kNormal ? normal_ : low_;
}

void WorkQueue::add(const ObjectKey& key, TimePoint now, Urgency urgency) {
    if (shut_down_) {
        return;
    }
    const auto [known, is_new] = dirty_.try_emplace(key, Dirty{urgency, now});
    const bool raised =
        !is_new && known->second.urgency == Urgency::kLow && urgency == Urgency::kNormal;
    if (!is_new && !raised) {
        return;
    }
    adds_ += is_new ? 1 : 0;
    known->second.urgency = urgency;
    if (processing_.count(key) == 0) {
        line_of(urgency).push_back(key);
    }
}

void WorkQueue::add_after(const ObjectKey& key, TimePoint due, TimePoint now) {
    if (shut_down_) {
        return;
    }
    if (due <= now) {
        add(key, now);
        return;
    }
    const auto [known, is_new] = due_.try_emplace(key, due);
    if (!is_new) {
        if (known->second <= due) {
            return;
        }
        by_due_.erase({known->second, key});
        known->second = due;
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
    add_after(key, now + wait, now);
}

void WorkQueue::forget(const ObjectKey& key) {
    failures_.erase(key);
}

std::uint32_t WorkQueue::failures(const ObjectKey& key) const {
    const auto found = failures_.find(key);
    return found == failures_.end() ? 0 : found->second;
}

void WorkQueue::promote_due(TimePoint now) {
    while (!by_due_.empty() && by_due_.begin()->first <= now) {
        const ObjectKey key = by_due_.begin()->second;
        by_due_.erase(by_due_.begin());
        due_.erase(key);
        add(key, now);
    }
}

std::optional<ObjectKey> WorkQueue::take_from(std::deque<ObjectKey>& line, Urgency urgency) {
    while (!line.empty()) {
        ObjectKey key = std::move(line.front());
        line.pop_front();
        // A key that was raised is in both queues; only its current entry counts.
        const auto dirty = dirty_.find(key);
        if (dirty != dirty_.end() && dirty->second.urgency == urgency &&
            processing_.count(key) == 0) {
            return key;
        }
    }
    return std::nullopt;
}

std::optional<ObjectKey> WorkQueue::pop(TimePoint now) {
    promote_due(now);
    auto key = take_from(normal_, Urgency::kNormal);
    if (!key) {
        key = take_from(low_, Urgency::kLow);
    }
    if (key) {
        const auto dirty = dirty_.find(*key);
        queued_ += now - dirty->second.since;
        ++handed_out_;
        dirty_.erase(dirty);
        processing_.emplace(*key, now);
    }
    return key;
}

void WorkQueue::done(const ObjectKey& key) {
    STOKER_CHECK(processing_.erase(key) == 1, "done() for a key that was not handed out");
    if (const auto dirty = dirty_.find(key); dirty != dirty_.end()) {
        line_of(dirty->second.urgency).push_back(key);
    }
}

std::optional<TimePoint> WorkQueue::processing_since(const ObjectKey& key) const {
    const auto found = processing_.find(key);
    return found == processing_.end() ? std::nullopt : std::optional(found->second);
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
    counts.delayed = due_.size();
    counts.processing = processing_.size();
    counts.adds = adds_;
    counts.retries = retries_;
    counts.queued = queued_;
    counts.handed_out = handed_out_;
    for (const auto& [key, since] : processing_) {
        counts.longest_processing = std::max(counts.longest_processing, now - since);
        counts.unfinished += now - since;
    }
    return counts;
}

namespace {

double in_seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

SharedWorkQueue::SharedWorkQueue(const Clock& clock, WorkQueueOptions options)
    : clock_(&clock),
      queue_(options) {}

void SharedWorkQueue::observe(WorkQueueTimes times) {
    const std::lock_guard lock(mutex_);
    times_ = std::move(times);
}

void SharedWorkQueue::wake() {
    ++changes_;
    changed_.notify_all();
}

void SharedWorkQueue::add(const ObjectKey& key, Urgency urgency) {
    const std::lock_guard lock(mutex_);
    queue_.add(key, clock_->now(), urgency);
    wake();
}

void SharedWorkQueue::add_after(const ObjectKey& key, Duration delay) {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_->now();
    queue_.add_after(key, now + delay, now);
    wake();
}

void SharedWorkQueue::add_rate_limited(const ObjectKey& key) {
    const std::lock_guard lock(mutex_);
    queue_.add_rate_limited(key, clock_->now());
    wake();
}

void SharedWorkQueue::forget(const ObjectKey& key) {
    const std::lock_guard lock(mutex_);
    queue_.forget(key);
}

std::optional<ObjectKey> SharedWorkQueue::pop_now(TimePoint now) {
    const Duration before = queue_.queued();
    auto key = queue_.pop(now);
    if (key && times_.queued) {
        times_.queued->observe(in_seconds(queue_.queued() - before));
    }
    return key;
}

std::optional<ObjectKey> SharedWorkQueue::pop(const std::stop_token& stop) {
    // Bounded, so that the clock is read again soon after a jump (a suspended machine).
    constexpr Duration kLongestNap = std::chrono::seconds{1};
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        const TimePoint now = clock_->now();
        if (auto key = pop_now(now)) {
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

void SharedWorkQueue::done(const ObjectKey& key) {
    const std::lock_guard lock(mutex_);
    if (const auto since = queue_.processing_since(key); since && times_.worked) {
        times_.worked->observe(in_seconds(clock_->now() - *since));
    }
    queue_.done(key);
    wake();
}

void SharedWorkQueue::shut_down() {
    const std::lock_guard lock(mutex_);
    queue_.shut_down();
    wake();
}

bool SharedWorkQueue::wait_drained(TimePoint until) {
    std::unique_lock lock(mutex_);
    while (!queue_.is_drained()) {
        const TimePoint now = clock_->now();
        if (now >= until) {
            return false;
        }
        changed_.wait_for(lock, until - now);
    }
    return true;
}

WorkQueueCounts SharedWorkQueue::counts() const {
    const std::lock_guard lock(mutex_);
    return queue_.counts(clock_->now());
}

}  // namespace stoker::control
