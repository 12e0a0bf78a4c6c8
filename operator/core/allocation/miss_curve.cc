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

// The nearest never-rising sequence (least squares): neighbours that rise are averaged.
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

MissCurve::MissCurve(Bytes dataset, double scale, double exponent, double epoch_volume)
    : dataset_(dataset),
      scale_(scale),
      exponent_(exponent),
      epoch_volume_(epoch_volume) {}

MissCurve MissCurve::exact(Bytes dataset) {
    return {dataset, 1, 1, 1};
}

MissCurve MissCurve::windowed(Bytes dataset, std::uint64_t jobs) {
    return {dataset, 1 / static_cast<double>(std::max<std::uint64_t>(jobs, 1)), 1, 1};
}

MissCurve MissCurve::importance(Bytes dataset, double beta) {
    const double bounded = std::min(clean(beta), kBetaMax);
    return {dataset, 1, 1 + bounded, 1 / (1 + bounded)};
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
        return exponent_ == 1 ? scale_ * (1 - share) : scale_ * std::pow(1 - share, exponent_);
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
        return scale_ * slope / to_double(dataset_);
    }
    const auto parts = static_cast<double>(table_.size() - 1);
    const auto part = std::min(static_cast<std::size_t>(share * parts), table_.size() - 2);
    return (table_[part] - table_[part + 1]) * parts / to_double(dataset_);
}

double MissCurve::share_for(double mass) const {
    if (table_.empty()) {
        return 1 - std::pow(mass / scale_, 1 / exponent_);
    }
    // The first entry that is small enough, and back into the part before it.
    const auto found = std::partition_point(
        table_.begin(), table_.end(), [&](double entry) { return entry > mass; });
    const auto part = static_cast<std::size_t>(found - table_.begin()) - 1;
    const double into = (table_[part] - mass) / (table_[part] - table_[part + 1]);
    return (static_cast<double>(part) + into) / static_cast<double>(table_.size() - 1);
}

Bytes MissCurve::bytes_for(double mass) const {
    if (!(mass > 0)) {
        return dataset_;
    }
    if (miss_mass(Bytes::zero()) <= mass) {
        return Bytes::zero();
    }
    // A guess by the inverse, then bisection around it, so that the answer agrees with miss_mass()
    // to the byte.
    const std::uint64_t all = dataset_.count();
    const double guess = std::clamp(share_for(mass), 0.0, 1.0) * to_double(dataset_);
    const std::uint64_t middle =
        guess >= to_double(dataset_) ? all : static_cast<std::uint64_t>(guess);
    const auto is_enough = [&](std::uint64_t bytes) { return miss_mass(Bytes{bytes}) <= mass; };
    std::uint64_t low = 0;  // too few
    std::uint64_t high = all;
    for (std::uint64_t reach = 1; reach < all; reach *= 4) {
        const std::uint64_t below = middle > reach ? middle - reach : 0;
        const std::uint64_t above = all - middle > reach ? middle + reach : all;
        if (is_enough(above) && (below == 0 || !is_enough(below))) {
            low = below;
            high = above;
            break;
        }
    }
    while (high - low > 1) {
        const std::uint64_t half = low + (high - low) / 2;
        (is_enough(half) ? high : low) = half;
    }
    return Bytes{high};
}

std::vector<Bytes> MissCurve::knots(std::size_t count, Bytes step) const {
    const bool linear = table_.empty() && exponent_ == 1;
    const std::uint64_t all = dataset_.count();
    const std::uint64_t least = std::max<std::uint64_t>(step.count(), 1);
    std::vector<Bytes> result;
    const std::uint64_t chords = linear ? 1 : std::max<std::uint64_t>(count, 1);
    const std::uint64_t exact = all / chords + (all % chords == 0 ? 0 : 1);
    const std::uint64_t steps = exact / least + (exact % least == 0 ? 0 : 1);
    const std::uint64_t length = (Bytes{steps} * least).count();
    for (std::uint64_t at = length; length > 0 && at < all && !linear; at += length) {
        result.emplace_back(at);
        if (all - at <= length) {
            break;
        }
    }
    if (all > 0) {
        result.push_back(dataset_);
    }
    return result;
}

}  // namespace stoker::control
