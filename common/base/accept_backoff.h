#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace stoker {

// Back-off of an accept loop after accept() fails, nearly always with "too many open files": the
// socket stays readable, so an immediate retry would spin. One instance per loop; not thread-safe.
class AcceptBackoff {
public:
    struct Advice {
        Duration pause{};          // before the next accept(): 10 ms, doubling to 1 s
        bool log = false;          // whether to log this failure; true at most once a minute
        std::uint64_t silent = 0;  // failures since the last one that was logged
    };

    // Records that accept() failed at `now`; the failure counts for the whole program.
    Advice failed(TimePoint now);

    // Records that accept() succeeded; the next pause is short again.
    void accepted() { pause_ = kFirst; }

    // Failures of all accept loops of the program. Thread-safe.
    [[nodiscard]] static std::uint64_t failures();

    // True if accept() failed because the program or the machine has no descriptor or memory left.
    // Other errors, such as a peer that has hung up, concern only one connection.
    [[nodiscard]] static bool is_exhausted(int error_number);

private:
    static constexpr Duration kFirst = std::chrono::milliseconds{10};

    Duration pause_ = kFirst;
    TimePoint logged_{};
    bool has_logged_ = false;
    std::uint64_t silent_ = 0;
};

}  // namespace stoker
