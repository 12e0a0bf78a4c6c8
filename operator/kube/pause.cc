#include "operator/kube/pause.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace stoker::control {

bool pause_until(const Clock& clock, TimePoint until, const std::stop_token& stop) {
    // Bounded, so that the clock is read again soon after a jump (a suspended machine).
    constexpr Duration kLongestNap = std::chrono::seconds{1};
    std::mutex mutex;
    std::condition_variable_any woken;
    std::unique_lock lock(mutex);
    for (TimePoint now = clock.now(); now < until && !stop.stop_requested(); now = clock.now()) {
        woken.wait_for(lock, stop, std::min(until - now, kLongestNap), [] { return false; });
    }
    return !stop.stop_requested();
}

}  // namespace stoker::control
