#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/bytes.h"

namespace stoker::sidecar {

// The window's size over time: it grows at once to what is needed, in steps, and shrinks to the
// largest need of the last two periods. A period is one dataset's worth of draws, so the window
// does not shrink in the pause between a loader's epochs: residents evicted for a window that grows
// again would have to be fetched again. Pure value; not thread-safe.
class WindowSize {
public:
    // `standard`: the smallest size, available without borrowing. `period`: length, in draws.
    WindowSize(Bytes standard, std::uint64_t period)
        : standard_(standard),
          period_(std::max<std::uint64_t>(period, 1)) {}

    // Records that `needed` bytes are needed now, after `draws` more draws of all readers.
    void note(Bytes needed, std::uint64_t draws) {
        draws_ += draws;
        if (draws_ >= period_) {
            draws_ = 0;
            before_ = peak_;
            peak_ = Bytes{};
        }
        peak_ = std::max(peak_, needed);
    }

    // Call when no reader shares the window any more.
    void reset() { before_ = peak_ = Bytes{}; }

    // Largest need of the last two periods.
    [[nodiscard]] Bytes needed() const { return std::max(before_, peak_); }

    // needed(), rounded up to whole quarters of the standard size; at least the standard size.
    [[nodiscard]] Bytes size() const {
        const std::uint64_t step = std::max<std::uint64_t>(standard_.count() / kSteps, 1);
        const std::uint64_t steps = (needed() - standard_ + Bytes{step - 1}).count() / step;
        return standard_ + Bytes{step} * steps;
    }

private:
    static constexpr std::uint64_t kSteps = 4;

    Bytes standard_;
    std::uint64_t period_;
    std::uint64_t draws_ = 0;
    Bytes peak_{};    // largest need of this period
    Bytes before_{};  // largest need of the previous period
};

}  // namespace stoker::sidecar
