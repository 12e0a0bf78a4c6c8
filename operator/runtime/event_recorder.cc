#include "operator/runtime/event_recorder.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "operator/kube/pause.h"
#include "operator/kube/request.h"
#include "operator/kube/resource_kind.h"

namespace stoker::control {

namespace {

constexpr Duration kTimeLimit = std::chrono::seconds{30};

}  // namespace

EventRecorder::EventRecorder(
    ApiTransport& transport, EventRecorderOptions options, const Clock& clock, std::uint64_t seed)
    : transport_(&transport),
      options_(std::move(options)),
      clock_(&clock),
      prng_(seed),
      series_(options_.series) {}

void EventRecorder::record(EventNote note) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= options_.queue_max) {
        ++dropped_;
        return;
    }
    queue_.push_back(std::move(note));
    changed_.notify_one();
}

void EventRecorder::run(const std::stop_token& stop) {
    bool stopping = false;
    TimePoint next_flush = clock_->now() + options_.flush_pause;
    while (!stopping) {
        take_in(stop, stopping);
        if (clock_->now() >= next_flush || stopping) {
            for (const EventWrite& write_now : series_.flush(clock_->now())) {
                write(write_now, stop, stopping ? 1 : options_.tries);
            }
            next_flush = clock_->now() + options_.flush_pause;
        }
    }
}

// Waits for events, at most until the next flush, and writes what is there.
void EventRecorder::take_in(const std::stop_token& stop, bool& stopping) {
    std::deque<EventNote> taken;
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, stop, options_.flush_pause, [this] { return !queue_.empty(); });
        std::swap(taken, queue_);
        stopping = stop.stop_requested();
    }
    for (const EventNote& note : taken) {
        if (const auto to_write = series_.add(note, clock_->now(), clock_->wall_now())) {
            write(*to_write, stop, stopping ? 1 : options_.tries);
        }
    }
    too_loud_ = series_.dropped();
}

void EventRecorder::write(
    const EventWrite& write, const std::stop_token& stop, std::uint32_t tries) {
    for (std::uint32_t made = 1; !try_write(write); ++made) {
        const double stretch = 0.75 + 0.5 * prng_.unit();
        const auto wait = std::chrono::duration_cast<Duration>(options_.retry_pause * stretch);
        if (made >= tries || !pause_until(*clock_, clock_->now() + wait, stop)) {
            const std::lock_guard lock(mutex_);
            ++dropped_;
            return;
        }
    }
}

// True when there is nothing left to do: written, or refused for good.
bool EventRecorder::try_write(const EventWrite& write) {
    if (const auto* count = std::get_if<EventCount>(&write)) {
        const auto patched = transport_->call(
            patch_request(
                kinds::kEvents,
                count->key,
                event_series_patch(count->count, count->last_seen),
                PatchType::kMerge),
            kTimeLimit,
            {});
        if (patched && patched->status != 404) {
            return patched->status < 500 && patched->status != 429;
        }
        if (!patched) {
            return false;
        }
        return try_write(EventCreate{count->key, count->note, count->first_seen});
    }
    const auto& create = std::get<EventCreate>(write);
    const auto created = transport_->call(
        create_request(
            kinds::kEvents,
            create.key.ns,
            event_object(create.key, create.note, create.first_seen, options_.reporter)),
        kTimeLimit,
        {});
    // 409: an earlier try was carried out and its answer lost. Other refusals (namespace going)
    // stay refusals.
    return created && created->status < 500 && created->status != 429;
}

std::uint64_t EventRecorder::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_ + too_loud_;
}

}  // namespace stoker::control
