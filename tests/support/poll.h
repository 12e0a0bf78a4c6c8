#pragma once

#include <thread>

#include "common/base/clock.h"

namespace stoker::test {

// Polls `condition` every few milliseconds until it holds. False: not within `limit`, which only
// bounds broken tests.
template <class Condition>
bool eventually(Condition&& condition, Duration limit = std::chrono::seconds{30}) {
    const SystemClock clock;
    for (const TimePoint until = clock.now() + limit; clock.now() < until;) {
        if (condition()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return condition();
}

}  // namespace stoker::test
