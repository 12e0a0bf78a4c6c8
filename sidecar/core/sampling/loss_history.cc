#include "sidecar/core/sampling/loss_history.h"

#include <algorithm>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// std::lower_bound without branch mispredictions; this takes most of the time per sample.
std::size_t count_below(const std::vector<float>& sorted, float loss) {
    const float* base = sorted.data();
    std::size_t size = sorted.size();
    while (size > 1) {
        const std::size_t half = size / 2;
        base += base[half - 1] < loss ? half : 0;
        size -= half;
    }
    const auto passed = static_cast<std::size_t>(base - sorted.data());
    return passed + (size == 1 && *base < loss ? 1 : 0);
}

}  // namespace

LossHistory::LossHistory(std::uint32_t capacity)
    : capacity_(capacity) {
    STOKER_CHECK(capacity > 0, "a history needs a capacity above 0");
    arrivals_.reserve(capacity);
    sorted_.reserve(capacity);
}

void LossHistory::clear() {
    oldest_ = 0;
    arrivals_.clear();
    sorted_.clear();
}

void LossHistory::add(float loss) {
    add_at(count_below(sorted_, loss), loss);
}

void LossHistory::add_at(std::size_t less, float loss) {
    if (size() == capacity_) {
        replace_oldest(less, loss);
        return;
    }
    arrivals_.push_back(loss);
    sorted_.insert(sorted_.begin() + static_cast<std::ptrdiff_t>(less), loss);
}

void LossHistory::replace_oldest(std::size_t less, float loss) {
    const auto at = [this](std::size_t place) {
        return sorted_.begin() + static_cast<std::ptrdiff_t>(place);
    };
    const auto gone = at(count_below(sorted_, arrivals_[oldest_]));
    const auto place = at(less);
    // Only the losses between the two positions move, by one.
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

double LossHistory::rate_and_add(float loss, double luck) {
    const std::size_t less = count_below(sorted_, loss);
    std::size_t equal = 0;
    if (less < sorted_.size() && sorted_[less] == loss) {
        const auto first = sorted_.begin() + static_cast<std::ptrdiff_t>(less);
        equal = static_cast<std::size_t>(std::upper_bound(first, sorted_.end(), loss) - first);
    }
    const double percentile = (static_cast<double>(less) + luck * static_cast<double>(equal + 1)) /
                              static_cast<double>(sorted_.size() + 1);
    add_at(less, loss);
    return percentile;
}

}  // namespace stoker::sidecar
