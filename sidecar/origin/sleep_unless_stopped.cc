#include "sidecar/origin/sleep_unless_stopped.h"

#include <condition_variable>
#include <mutex>

namespace stoker::sidecar {

bool sleep_unless_stopped(Duration delay, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never_notified;
    std::unique_lock lock{mutex};
    never_notified.wait_for(lock, stop, delay, [] { return false; });
    return !stop.stop_requested();
}

}  // namespace stoker::sidecar
