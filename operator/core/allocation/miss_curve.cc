#include "operator/core/allocation/miss_curve.h"

#include <algorithm>
#include <cmath>

namespace stoker::control {

namespace {

constexpr std::size_t kDrawParts = 32;  // of the curve, for draws with replacement
constexpr double kBatch = 64;           // samples that scores are ranked among; hardly matters

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

// Fractions of the dataset's requests, with sum 1; empty: no usable mass.
std::vector<double> shares_of(const std::vector<float>& masses) {
    std::vector<double> parts;
    double sum = 0;
    for (const float mass : masses) {
        if (parts.size() == MissCurve::kSketchSizeMax) {
            break;
        }
        parts.push_back(clean(mass));
        sum += parts.back();
    }
    if (sum <= 0 || !std::isfinite(sum)) {
        return {};
    }
    for (double& part : parts) {
        part /= sum;
    }
    return parts;
}

// Probability that a sample is drawn at all, if it is drawn `times` on average.
double once_drawn(double times) {
    return -std::expm1(-times);
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
    result.linear_ = full / (full + (1 - full) / result.exponent_);
    return result;
}

// `parts`: misses that each part of the dataset saves, in the order in which they are kept. Summed
// from the end, so that the curve ends at exactly 0.
MissCurve MissCurve::of_parts(Bytes dataset, const std::vector<double>& parts) {
    MissCurve result = exact(dataset);
    result.table_.assign(parts.size() + 1, 0);
    for (std::size_t i = parts.size(); i > 0; --i) {
        result.table_[i - 1] = result.table_[i] + parts[i - 1];
    }
    return result;
}

MissCurve MissCurve::measured(Bytes dataset, const std::vector<float>& masses, bool again) {
    std::vector<double> parts = shares_of(masses);
    if (parts.empty()) {
        return again ? measured(dataset, {1}, true) : exact(dataset);
    }
    parts = level_rises(parts);
    const auto count = static_cast<double>(parts.size());
    for (double& part : parts) {
        part = again ? once_drawn(part * count) / count : part;
    }
    return of_parts(dataset, parts);
}

MissCurve MissCurve::replicate(Bytes dataset, double replication, double bias) {
    const double least = std::max(clean(bias), 1.0);
    std::vector<double> draws;  // by part: mean number of draws of one of its samples
    double sum = 0;
    for (std::size_t i = 0; i < kDrawParts; ++i) {
        const double beaten = kBatch * (1 - (static_cast<double>(i) + .5) / kDrawParts);
        draws.push_back(std::log(beaten + least));
        sum += draws.back();
    }
    const double mean = sum / kDrawParts;
    double kept = 0;  // share of all draws
    double before = 0;
    std::vector<double> parts;
    for (std::size_t cached = 0; cached <= kDrawParts; ++cached) {
        // The share of its draws that a sample which is not resident keeps: the additional reads of
        // residents replace draws of the other samples.
        const double left =
            kept < 1 ? (1 - std::max(clean(replication), 1.0) * kept) / (1 - kept) : 0;
        double misses = 0;
        for (std::size_t i = cached; i < kDrawParts && left > 0; ++i) {
            misses += once_drawn(left * draws[i] / mean) / kDrawParts;
        }
        if (cached > 0) {
            parts.push_back(before - misses);
        }
        before = misses;
        kept += cached < kDrawParts ? draws[cached] / sum : 0;
    }
    return of_parts(dataset, level_rises(parts));
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
