#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// When to repeat a fetch that a leader refused, for clients that cannot read elsewhere: after a
// second, then after doubling delays, for kPatience in all. Pure: no timers inside.
class FetchPatience {
public:
    static constexpr Duration kFirstDelay = std::chrono::seconds{1};
    static constexpr Duration kPatience = std::chrono::seconds{30};

    // Records a refusal of the request. False: kPatience has passed; the request is forgotten.
    bool wait(std::uint64_t request_id, TimePoint now);

    // Records that the request was answered.
    void forget(std::uint64_t request_id) { waiting_.erase(request_id); }

    // Call when the leader has changed: the caller then repeats all requests. Their time limits
    // keep running.
    void ask_all();

    // Returns the requests to repeat now.
    std::vector<std::uint64_t> take_due(TimePoint now);

    [[nodiscard]] std::optional<TimePoint> next_due() const;

private:
    struct Waiting {
        TimePoint since{};
        Duration delay = kFirstDelay;
        std::optional<TimePoint> due;  // unset while the leader has the request
    };

    std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace stoker::sidecar
