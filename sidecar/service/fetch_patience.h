#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// When to ask a leader again for what it does not keep now, where nobody can read it elsewhere: a
// second later, then after twice as long each time, for kPatience in all. Pure: no timers inside.
class FetchPatience {
public:
    static constexpr Duration kFirstDelay = std::chrono::seconds{1};
    static constexpr Duration kPatience = std::chrono::seconds{30};

    // The request was refused. False: long enough; it is forgotten.
    bool wait(std::uint64_t request_id, TimePoint now);

    // The request has its answer.
    void forget(std::uint64_t request_id) { waiting_.erase(request_id); }

    // Somebody else leads: all are asked anew without us. Their patience goes on.
    void ask_all();

    // The requests to be asked again now.
    std::vector<std::uint64_t> take_due(TimePoint now);

    [[nodiscard]] std::optional<TimePoint> next_due() const;

private:
    struct Waiting {
        TimePoint since{};
        Duration delay = kFirstDelay;
        std::optional<TimePoint> due;  // unset while the leader is asked
    };

    std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace stoker::sidecar
