#include "sidecar/service/fetch_patience.h"

#include <algorithm>

namespace stoker::sidecar {

bool FetchPatience::wait(std::uint64_t request_id, TimePoint now) {
    Waiting& waiting =
        waiting_.try_emplace(request_id, Waiting{now, kFirstDelay, {}}).first->second;
    const TimePoint end = waiting.since + kPatience;
    if (now >= end) {
        waiting_.erase(request_id);
        return false;
    }
    waiting.due = std::min(now + waiting.delay, end);
    waiting.delay *= 2;
    return true;
}

void FetchPatience::ask_all() {
    for (auto& [id, waiting] : waiting_) {
        waiting.due.reset();
    }
}

std::vector<std::uint64_t> FetchPatience::take_due(TimePoint now) {
    std::vector<std::uint64_t> due;
    for (auto& [id, waiting] : waiting_) {
        if (waiting.due && *waiting.due <= now) {
            waiting.due.reset();
            due.push_back(id);
        }
    }
    return due;
}

std::optional<TimePoint> FetchPatience::next_due() const {
    std::optional<TimePoint> next;
    for (const auto& [id, waiting] : waiting_) {
        if (waiting.due) {
            next = std::min(next.value_or(*waiting.due), *waiting.due);
        }
    }
    return next;
}

}  // namespace stoker::sidecar
