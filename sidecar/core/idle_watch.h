#pragma once

#include "common/base/clock.h"

namespace stoker::sidecar {

// Tells when something was not used for as long as the patience. Pure; not thread-safe.
class IdleWatch {
public:
    // Counts from `now`.
    IdleWatch(Duration patience, TimePoint now)
        : patience_(patience),
          used_at_(now) {}

    // Call it now and then; time does not go back. A use between two calls does not count.
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
