#pragma once

#include "common/base/clock.h"

namespace stoker::sidecar {

// Detects that something has been unused for a given time, the patience. Pure; not thread-safe.
class IdleWatch {
public:
    // Starts counting at `now`.
    IdleWatch(Duration patience, TimePoint now)
        : patience_(patience),
          used_at_(now) {}

    // Call periodically; time must not go back. A use between two calls goes unnoticed.
    [[nodiscard]] bool is_over(TimePoint now, bool in_use) {
        if (in_use) {
            used_at_ = now;
        }
        return now - used_at_ >= patience_;
    }

private:
    Duration patience_;
    TimePoint used_at_;
};

}  // namespace stoker::sidecar
