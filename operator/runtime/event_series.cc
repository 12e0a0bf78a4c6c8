#include "operator/runtime/event_series.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker::control {

namespace {

// The subject without its resource version, so that events at different times compare equal.
EventSubject timeless(EventSubject subject) {
    subject.resource_version.clear();
    return subject;
}

}  // namespace

EventSeries::EventSeries(EventSeriesLimits limits)
    : limits_(limits) {}

std::optional<EventWrite> EventSeries::add(
    const EventNote& note, TimePoint now, WallTime wall_now) {
    const Key key{
        timeless(note.regarding),
        timeless(note.related.value_or(EventSubject{})),
        note.type,
        note.reason,
        note.action};
    const auto found = series_.find(key);
    if (found != series_.end() && now - found->second.last < limits_.series_ends_after) {
        Series& series = found->second;
        series.last = now;
        series.state.last_seen = wall_now;
        series.state.count++;
        if (series.state.count > 2) {
            return std::nullopt;
        }
        series.written = series.state.count;
        series.last_written = now;
        return series.state;
    }
    if (!allows(note.regarding, now)) {
        ++dropped_;
        return std::nullopt;
    }
    if (found == series_.end() && series_.size() >= limits_.series_max) {
        forget_oldest();
    }
    const std::string& ns = note.regarding.key.ns;
    const ObjectKey name{
        ns.empty() ? "default" : ns,
        fmt::format("{}.{:x}", note.regarding.key.name, wall_now.time_since_epoch().count())};
    const EventWrite first{name, note, wall_now, wall_now};
    series_.insert_or_assign(key, Series{first, 1, now, now});
    return first;
}

std::vector<EventWrite> EventSeries::flush(TimePoint now) {
    std::vector<EventWrite> writes;
    for (auto at = series_.begin(); at != series_.end();) {
        Series& series = at->second;
        const bool ended = now - series.last >= limits_.series_ends_after;
        const bool due = now - series.last_written >= limits_.flush_every;
        if ((ended || due) && series.state.count > series.written) {
            writes.push_back(series.state);
            series.written = series.state.count;
            series.last_written = now;
        }
        at = ended ? series_.erase(at) : std::next(at);
    }
    return writes;
}

bool EventSeries::allows(const EventSubject& subject, TimePoint now) {
    if (buckets_.size() > limits_.series_max) {
        buckets_.clear();  // a memory limit: every subject's budget restarts
    }
    TokenBucket& bucket =
        buckets_.try_emplace(subject.uid, limits_.per_second_per_object, limits_.burst_per_object)
            .first->second;
    return bucket.try_take(now);
}

// Forgets an eighth of the series at once, so that a full map is not scanned for each note.
void EventSeries::forget_oldest() {
    std::vector<TimePoint> times;
    times.reserve(series_.size());
    for (const auto& [key, series] : series_) {
        times.push_back(series.last);
    }
    const auto last = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 8);
    std::nth_element(times.begin(), last, times.end());
    std::erase_if(series_, [at = *last](const auto& entry) { return entry.second.last <= at; });
}

}  // namespace stoker::control
