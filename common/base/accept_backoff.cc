#include "common/base/accept_backoff.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

namespace stoker {

namespace {

constexpr Duration kPauseMax = std::chrono::seconds{1};
constexpr Duration kLogEvery = std::chrono::minutes{1};

std::atomic<std::uint64_t> all_failures{0};

}  // namespace

AcceptBackoff::Advice AcceptBackoff::failed(TimePoint now) {
    all_failures.fetch_add(1, std::memory_order_relaxed);
    Advice advice;
    advice.pause = std::exchange(pause_, std::min(2 * pause_, kPauseMax));
    advice.log = !has_logged_ || now - logged_ >= kLogEvery;
    if (advice.log) {
        has_logged_ = true;
        logged_ = now;
        advice.silent = std::exchange(silent_, 0);
    } else {
        ++silent_;
    }
    return advice;
}

std::uint64_t AcceptBackoff::failures() {
    return all_failures.load(std::memory_order_relaxed);
}

bool AcceptBackoff::is_exhausted(int error_number) {
    return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS ||
           error_number == ENOMEM;
}

}  // namespace stoker
