#include "operator/core/allocation/miss_curve.h"

#include <algorithm>
#include <cmath>

namespace stoker::control {

namespace {

double clean(double value) {
    return std::isfinite(value) && value > 0 ? value : 0;
}

struct Block {
    double mean = 0;
    std::size_t count = 0;
};

// The nearest non-increasing sequence (least squares): averages neighbours that rise.
std::vector<double> level_rises(const std::vector<double>& values) {
    std::vector<Block> blocks;
    for (const double value : values) {
        Block block{value, 1};
        while (!blocks.empty() && blocks.back().mean < block.mean) {
            const Block& last = blocks.back();
            const auto all = static_cast<double>(last.count + block.count);
            block.mean = (last.mean * static_cast<double>(last.count) +
                          block.mean * static_cast<double>(block.count)) /
                         all;
            block.count += last.count;
            blocks.pop_back();
        }
        blocks.push_back(block);
    }
    std::vector<double> result;
    for (const Block& block : blocks) {
        result.insert(result.end(), block.count, block.mean);
    }
    return result;
}

double to_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

}  // namespace

MissCurve::MissCurve(Bytes dataset, double exponent)
    : dataset_(dataset),
      exponent_(exponent) {}

MissCurve MissCurve::exact(Bytes dataset) {
    return {dataset, 1};
}

MissCurve MissCurve::importance(Bytes dataset, double beta, double full_epochs) {
    MissCurve result{dataset, 1 + std::min(clean(beta), kBetaMax)};
    const double full = std::min(clean(full_epochs), 1.0);
    result.volume_ = full + (1 - full) / result.exponent_;
    result.linear_ = full / result.volume_;
    return result;
}

MissCurve MissCurve::measured(Bytes dataset, const std::vector<float>& masses) {
    std::vector<double> parts;
    double sum = 0;
    for (const float mass : masses) {
        if (parts.size() == kSketchSizeMax) {
            break;
        }
        parts.push_back(clean(mass));
        sum += parts.back();
    }
    MissCurve result = exact(dataset);
    if (sum <= 0 || !std::isfinite(sum)) {
        return result;
    }
    parts = level_rises(parts);
    // Summed from the end, so that the curve ends at exactly 0.
    result.table_.assign(parts.size() + 1, 0);
    for (std::size_t i = parts.size(); i > 0; --i) {
        result.table_[i - 1] = result.table_[i] + parts[i - 1] / sum;
    }
    return result;
}

double MissCurve::share_of(Bytes cached) const {
    return cached >= dataset_ ? 1 : to_double(cached) / to_double(dataset_);
}

double MissCurve::miss_mass(Bytes cached) const {
    if (cached >= dataset_) {
        return 0;
    }
    const double share = share_of(cached);
    if (table_.empty()) {
        const double left = 1 - share;
        return exponent_ == 1 ? left : linear_ * left + (1 - linear_) * std::pow(left, exponent_);
    }
    const auto parts = static_cast<double>(table_.size() - 1);
    const auto part = std::min(static_cast<std::size_t>(share * parts), table_.size() - 2);
    const double into = share * parts - static_cast<double>(part);
    return table_[part] + (table_[part + 1] - table_[part]) * into;
}

double MissCurve::marginal(Bytes cached) const {
    if (cached >= dataset_) {
        return 0;
    }
    const double share = share_of(cached);
    if (table_.empty()) {
        const double slope = exponent_ == 1 ? 1 : exponent_ * std::pow(1 - share, exponent_ - 1);
        return (linear_ + (1 - linear_) * slope) / to_double(dataset_);
    }
    const auto parts = static_cast<double>(table_.size() - 1);
    const auto part = std::min(static_cast<std::size_t>(share * parts), table_.size() - 2);
    return (table_[part] - table_[part + 1]) * parts / to_double(dataset_);
}

Bytes MissCurve::bytes_for(double mass) const {
    if (!(mass > 0)) {
        return dataset_;
    }
    std::uint64_t low = 0;
    std::uint64_t high = dataset_.count();  // always enough
    while (low < high) {
        const std::uint64_t half = low + (high - low) / 2;
        if (miss_mass(Bytes{half}) <= mass) {
            high = half;
        } else {
            low = half + 1;
        }
    }
    return Bytes{high};
}

std::vector<Bytes> MissCurve::knots(std::size_t count, Bytes step) const {
    const auto divide_up = [](std::uint64_t all, std::uint64_t part) {
        return all / part + (all % part == 0 ? 0 : 1);
    };
    const bool straight = table_.empty() && exponent_ == 1;
    const std::uint64_t chords = straight ? 1 : std::max<std::uint64_t>(count, 1);
    const std::uint64_t least = std::max<std::uint64_t>(step.count(), 1);
    const Bytes chord = Bytes{divide_up(divide_up(dataset_.count(), chords), least)} * least;
    std::vector<Bytes> result;
    for (std::uint64_t i = 1; i < chords && chord * i < dataset_; ++i) {
        result.push_back(chord * i);
    }
    if (dataset_ > Bytes::zero()) {
        result.push_back(dataset_);
    }
    return result;
}

}  // namespace stoker::control
