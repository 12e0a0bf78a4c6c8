#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace stoker {

// What an accept loop does when accept() fails, which is nearly always "too many open files": the
// socket stays readable, so trying again at once would spin. One for each loop; not thread-safe.
class AcceptBackoff {
public:
    struct Advice {
        Duration pause{};          // before the next accept(): 10 ms, doubling to 1 s
        bool log = false;          // at most once a minute
        std::uint64_t silent = 0;  // failures since the last one that was logged
    };

    // accept() failed at `now`. Counted for the whole program.
    Advice failed(TimePoint now);

    // accept() succeeded: the next pause is a short one.
    void accepted() { pause_ = kFirst; }

    // Failures of all accept loops of this program. Thread-safe.
    [[nodiscard]] static std::uint64_t failures();

    // Whether a failed accept() calls for a pause: the program or the machine has no descriptor or
    // no memory left. Others (a peer that is gone already) concern one connection only.
    [[nodiscard]] static bool is_exhausted(int error_number);

private:
    static constexpr Duration kFirst = std::chrono::milliseconds{10};

    Duration pause_ = kFirst;
    TimePoint logged_{};
    bool has_logged_ = false;
    std::uint64_t silent_ = 0;
};

}  // namespace stoker
