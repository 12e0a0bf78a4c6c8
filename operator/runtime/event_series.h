#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/base/token_bucket.h"
#include "operator/api/meta.h"
#include "operator/kube/event.h"

namespace stoker::control {

// An events.k8s.io/v1 Event to write: a new one first, later its count.
struct EventWrite {
    ObjectKey key;
    EventNote note;  // also recreates a deleted Event
    WallTime first_seen;
    WallTime last_seen;
    std::uint64_t count = 1;  // 1: create the Event

    [[nodiscard]] bool is_new() const { return count == 1; }
};

struct EventSeriesLimits {
    Duration series_ends_after = std::chrono::minutes{6};  // without another event
    Duration flush_every = std::chrono::minutes{30};
    double burst_per_object = 25;
    double per_second_per_object = 1.0 / 300;
    std::size_t series_max = 4096;
};

// Folds repeated events into series, as client-go's events broadcaster does: the first is created,
// the second within six minutes turns it into a series, further ones are only counted and written
// every half hour and when the series ends. An object with too many different events is cut off and
// counted. Pure; not thread-safe.
class EventSeries {
public:
    explicit EventSeries(EventSeriesLimits limits = {});

    // The write that this event causes, if any.
    std::optional<EventWrite> add(const EventNote& note, TimePoint now, WallTime wall_now);

    // The writes that are due by time; call it about every minute.
    std::vector<EventWrite> flush(TimePoint now);

    // Events dropped because their object had too many.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

private:
    using Key = std::tuple<EventSubject, EventSubject, EventType, std::string, std::string>;

    struct Series {
        EventWrite state;
        std::uint64_t written = 0;  // the count that the server knows
        TimePoint last{};
        TimePoint last_written{};
    };

    [[nodiscard]] bool allows(const EventSubject& subject, TimePoint now);
    void forget_oldest();

    EventSeriesLimits limits_;
    std::map<Key, Series> series_;
    std::map<std::string, TokenBucket> buckets_;  // by the subject's UID
    std::uint64_t dropped_ = 0;
};

}  // namespace stoker::control
