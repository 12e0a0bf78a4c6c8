#include "sidecar/core/sampling/loss_ring.h"

#include <algorithm>

#include "common/base/check.h"

namespace stoker::sidecar {

LossRing::LossRing(std::uint32_t capacity)
    : capacity_(capacity) {
    STOKER_CHECK(capacity > 0, "a ring has places");
    arrivals_.reserve(capacity);
    sorted_.reserve(capacity);
}

void LossRing::clear() {
    oldest_ = 0;
    arrivals_.clear();
    sorted_.clear();
}

void LossRing::add(float loss) {
    if (size() == capacity_) {
        replace_oldest(loss);
        return;
    }
    arrivals_.push_back(loss);
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), loss), loss);
}

void LossRing::replace_oldest(float loss) {
    const auto gone = std::lower_bound(sorted_.begin(), sorted_.end(), arrivals_[oldest_]);
    const auto place = std::upper_bound(sorted_.begin(), sorted_.end(), loss);
    // Only what lies between the two moves, by one place.
    if (place > gone) {
        std::move(gone + 1, place, gone);
        *(place - 1) = loss;
    } else {
        std::move_backward(place, gone, gone + 1);
        *place = loss;
    }
    arrivals_[oldest_] = loss;
    oldest_ = (oldest_ + 1) % capacity_;
}

double LossRing::percentile(float loss, double luck) const {
    const auto [first, last] = std::equal_range(sorted_.begin(), sorted_.end(), loss);
    const auto less = static_cast<double>(first - sorted_.begin());
    const auto equal = static_cast<double>(last - first);
    return (less + luck * (equal + 1)) / static_cast<double>(sorted_.size() + 1);
}

}  // namespace stoker::sidecar
