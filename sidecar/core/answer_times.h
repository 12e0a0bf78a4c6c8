#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "common/base/clock.h"

namespace stoker::sidecar {

// The slowest of a source's recent answers, by which a caller tells a late answer from a usual one:
// the kQuantile of the last kAnswersMax answers. Not thread-safe.
class AnswerTimes {
public:
    static constexpr std::size_t kAnswersMin = 16;  // fewer: no estimate
    static constexpr std::size_t kAnswersMax = 512;
    static constexpr double kQuantile = 0.99;

    void note(Duration time) {
        times_[next_++ % kAnswersMax] = time;
        if (next_ % kAnswersMin == 0) {
            estimate();
        }
    }

    // The estimate, updated every kAnswersMin answers. nullopt: too few answers.
    [[nodiscard]] std::optional<Duration> slow() const { return slow_; }

private:
    void estimate() {
        auto sorted = times_;
        const std::span known{sorted.data(), std::min(next_, kAnswersMax)};
        const auto at =
            static_cast<std::ptrdiff_t>(kQuantile * static_cast<double>(known.size() - 1) + 0.5);
        std::nth_element(known.begin(), known.begin() + at, known.end());
        slow_ = known[static_cast<std::size_t>(at)];
    }

    std::array<Duration, kAnswersMax> times_{};
    std::size_t next_ = 0;  // number of answers so far
    std::optional<Duration> slow_;
};

// How long to wait for a peer's answer before the origin is asked as well: far longer than this
// peer's usual answers plus the origin's, because the peer may have to ask the origin first. At
// most kMost, because a trainer waits, and one fault raises the estimate for many answers. Without
// an estimate of the peer: kMost.
class Patience {
public:
    static constexpr Duration kMost = std::chrono::seconds{10};
    static constexpr Duration kLeast = std::chrono::milliseconds{500};

    static Duration of(const AnswerTimes& peer, const AnswerTimes& origin) {
        return peer.slow()
                   ? std::min(
                         kMost, kLeast + 4 * *peer.slow() + 2 * origin.slow().value_or(Duration{}))
                   : kMost;
    }
};

}  // namespace stoker::sidecar
