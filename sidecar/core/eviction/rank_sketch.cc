#include "sidecar/core/eviction/rank_sketch.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kSamplesPerPart = 32;
constexpr double kKept = 0.75;  // share of the old weight that remains after each new epoch

}  // namespace

RankOrder::RankOrder(std::vector<Entry> entries) {
    std::ranges::sort(entries, std::greater{}, &Entry::value);
    double sum = 0;
    for (const Entry& entry : entries) {
        sum += static_cast<double>(entry.bytes.count());
        values_.push_back(entry.value);
        ends_.push_back(sum);
    }
    for (double& end : ends_) {
        end = sum > 0 ? end / sum : 1;
    }
}

RankOrder::Span RankOrder::span_of(float value) const {
    if (values_.empty()) {
        return {};
    }
    const auto [first, last] = std::ranges::equal_range(values_, value, std::greater{});
    const auto begin = static_cast<std::size_t>(first - values_.begin());
    const auto after = static_cast<std::size_t>(last - values_.begin());
    const std::size_t from = std::min(begin, values_.size() - 1);
    const std::size_t to = std::max(after, from + 1);
    return {from == 0 ? 0 : ends_[from - 1], ends_[to - 1]};
}

RankSketch::RankSketch(std::uint32_t sample_count)
    : steps_(std::clamp(sample_count / kSamplesPerPart, 1U, kPartsMax) + 1),
      masses_(steps_.size() - 1) {}

void RankSketch::count(const RankOrder::Span& span, Bytes bytes) {
    const auto parts = static_cast<double>(masses_.size());
    const auto first =
        std::min(static_cast<std::size_t>(std::max(span.begin, 0.0) * parts), masses_.size() - 1);
    const auto end = std::clamp(
        static_cast<std::size_t>(std::ceil(span.end * parts)), first + 1, masses_.size());
    const auto amount = static_cast<double>(bytes.count());
    steps_[first] += amount / static_cast<double>(end - first);
    steps_[end] -= amount / static_cast<double>(end - first);
    counted_ += amount;
}

void RankSketch::close_epoch() {
    if (counted_ == 0) {
        return;
    }
    double level = 0;
    for (std::size_t part = 0; part < masses_.size(); ++part) {
        level += steps_[part];
        masses_[part] = masses_[part] * kKept + std::max(level, 0.0);
    }
    epoch_weights_ = epoch_weights_ * kKept + 1;
    std::ranges::fill(steps_, 0);
    counted_ = 0;
    ++revision_;
}

Bytes RankSketch::epoch_bytes() const {
    double sum = 0;
    for (const double mass : masses_) {
        sum += mass;
    }
    return Bytes{epoch_weights_ > 0 ? static_cast<std::uint64_t>(sum / epoch_weights_) : 0};
}

std::vector<float> RankSketch::masses() const {
    double sum = 0;
    for (const double mass : masses_) {
        sum += mass;
    }
    std::vector<float> shares;
    shares.reserve(masses_.size());
    for (const double mass : masses_) {
        shares.push_back(sum > 0 ? static_cast<float>(mass / sum) : 0);
    }
    return shares;
}

}  // namespace stoker::sidecar
