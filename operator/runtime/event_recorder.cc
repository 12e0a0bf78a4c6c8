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

// Waits for events, at most until the next flush, and writes them.
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

// True if the write needs no further try: it succeeded, or was refused for good.
bool EventRecorder::try_write(const EventWrite& write) {
    const auto send = [this](const ApiRequest& request) {
        return transport_->call(request, kTimeLimit, {});
    };
    auto answer = write.is_new() ? Result<ApiResponse>(ApiResponse{404})
                                 : send(patch_request(
                                       kinds::kEvents,
                                       write.key,
                                       event_series_patch(write.count, write.last_seen),
                                       PatchType::kMerge));
    if (answer && answer->status == 404) {
        // 409: an earlier try succeeded and its response was lost.
        answer = send(create_request(
            kinds::kEvents,
            write.key.ns,
            event_object(write.key, write.note, write.first_seen, options_.reporter)));
    }
    // Other refusals, for example because the namespace terminates, are final.
    return answer && answer->status < 500 && answer->status != 429;
}

std::uint64_t EventRecorder::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_ + too_loud_;
}

}  // namespace stoker::control
