#include "sidecar/core/bypass_controller.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Limits memory per window; more fetches would hardly change the median.
constexpr std::size_t kFetchesMax = 4096;

Duration median(std::vector<Duration>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

void BypassController::on_stored(const FetchTimes& times) {
    if (origin_.size() < kFetchesMax) {
        origin_.push_back(times.origin);
        store_.push_back(times.store);
    }
}

void BypassController::step(TimePoint now, Duration write_blocked) {
    if (limits_.window <= Duration{}) {
        return;
    }
    if (is_aside()) {
        if (now >= aside_until_) {
            aside_until_ = {};
            slow_in_a_row_ = limits_.slow_windows - 1;  // a trial: one slow window suffices
            begin_window(now, write_blocked);
        }
        return;
    }
    if (!begun_ || origin_.empty()) {
        begin_window(now, write_blocked);  // idle time is no evidence about the disk
        return;
    }
    if (now - begun_at_ < limits_.window || origin_.size() < limits_.fetches_min) {
        return;
    }
    finding_.origin = median(origin_);
    finding_.store = median(store_);
    finding_.blocked_share = seconds(write_blocked - blocked_at_begin_) / seconds(now - begun_at_);
    judge(now);
    begin_window(now, write_blocked);
}

void BypassController::begin_window(TimePoint now, Duration write_blocked) {
    begun_ = true;
    begun_at_ = now;
    blocked_at_begin_ = write_blocked;
    origin_.clear();
    store_.clear();
}

bool BypassController::is_slow() const {
    return finding_.store >= limits_.store_min &&
           seconds(finding_.store) >= limits_.slower * seconds(finding_.origin) &&
           finding_.blocked_share >= limits_.blocked_share;
}

void BypassController::judge(TimePoint now) {
    if (!is_slow()) {
        slow_in_a_row_ = 0;
        pause_ = {};
        return;
    }
    if (++slow_in_a_row_ < limits_.slow_windows) {
        return;
    }
    pause_ = std::min(std::max(limits_.pause_min, pause_ * 2), limits_.pause_max);
    aside_until_ = now + pause_;
}

}  // namespace stoker::sidecar
