#include "sidecar/core/sampling/bucket_criteria.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stoker::sidecar {

namespace {

constexpr double kSteps = 65534;

std::uint16_t to_steps(double probability) {
    return static_cast<std::uint16_t>(std::lround(std::clamp(probability, 0.0, 1.0) * kSteps));
}

double from_steps(std::uint16_t steps) {
    return steps / kSteps;
}

// The least and the most that one criterion gave.
struct Range {
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();

    void take(double value) {
        least = std::min(least, value);
        most = std::max(most, value);
    }

    // 0..1; 0 where all are equal.
    [[nodiscard]] double normalise(double value) const {
        return most > least ? (value - least) / (most - least) : 0;
    }
};

}  // namespace

double cross_entropy_term(double p_true) {
    return p_true > 0 ? -p_true * std::log2(p_true) : 0;
}

double margin_term(double p_true, double p_other) {
    return 1 - (p_true - p_other);
}

double fetch_term(double load, double size, double alpha) {
    const double cost = alpha * load + (1 - alpha) * size;
    return 1 / std::max(cost, 1e-6);
}

BucketCriteria::BucketCriteria(std::uint32_t count, CriteriaSettings settings)
    : settings_(std::move(settings)),
      p_true_(count, kUnknown),
      p_other_(count, kUnknown),
      loads_(count, std::numeric_limits<float>::quiet_NaN()),
      scores_(count) {}

bool BucketCriteria::record_loss(SampleIndex sample, float loss) {
    if (!std::isfinite(loss)) {
        return false;
    }
    const float p_true = std::exp(-std::max(loss, 0.0F));
    return record_outcome(sample, p_true, 1 - p_true);
}

bool BucketCriteria::record_outcome(SampleIndex sample, float p_true, float p_other) {
    if (sample >= p_true_.size() || !std::isfinite(p_true) || !std::isfinite(p_other)) {
        return false;
    }
    known_ += knows(sample) ? 0 : 1;
    p_true_[sample] = to_steps(p_true);
    p_other_[sample] = to_steps(p_other);
    return true;
}

bool BucketCriteria::record_load(SampleIndex sample, float seconds) {
    if (sample >= loads_.size() || !std::isfinite(seconds) || seconds < 0) {
        return false;
    }
    loads_[sample] = seconds;
    return true;
}

BucketCriteria::Means BucketCriteria::means() const {
    double load = 0;
    double loads = 0;
    double size = 0;
    for (SampleIndex sample = 0; sample < loads_.size(); ++sample) {
        if (!std::isnan(loads_[sample])) {
            load += static_cast<double>(loads_[sample]);
            ++loads;
        }
        size += settings_.size_of ? static_cast<double>(settings_.size_of(sample).count()) : 1;
    }
    Means means{loads > 0 ? load / loads : 0, size / static_cast<double>(loads_.size())};
    means.load = means.load > 0 ? means.load : 1;
    means.size = means.size > 0 ? means.size : 1;
    return means;
}

BucketCriteria::Terms BucketCriteria::terms_of(SampleIndex sample, const Means& means) const {
    const double p_true = from_steps(p_true_[sample]);
    Terms terms{.cross_entropy = cross_entropy_term(p_true)};
    if (settings_.bottleneck == Bottleneck::kIo) {
        terms.margin = margin_term(p_true, from_steps(p_other_[sample]));
        const double size =
            settings_.size_of ? static_cast<double>(settings_.size_of(sample).count()) : 1;
        const double load =
            std::isnan(loads_[sample]) ? 1 : static_cast<double>(loads_[sample]) / means.load;
        terms.fetch = fetch_term(load, size / means.size, settings_.alpha);
    }
    return terms;
}

void BucketCriteria::rescore() {
    const Means all_means = means();
    Range cross_entropy;
    Range margin;
    Range fetch;
    double losses = 0;
    for (SampleIndex sample = 0; sample < p_true_.size(); ++sample) {
        if (knows(sample)) {
            const Terms terms = terms_of(sample, all_means);
            cross_entropy.take(terms.cross_entropy);
            margin.take(terms.margin);
            fetch.take(terms.fetch);
            losses -= std::log(std::max(from_steps(p_true_[sample]), 0.5 / kSteps));
        }
    }
    mean_loss_ = known_ > 0 ? losses / known_ : 0;
    const double weights = settings_.cross_entropy + settings_.margin + settings_.fetch;
    for (SampleIndex sample = 0; sample < p_true_.size(); ++sample) {
        if (knows(sample)) {
            const Terms terms = terms_of(sample, all_means);
            const double sum =
                settings_.cross_entropy * cross_entropy.normalise(terms.cross_entropy) +
                settings_.margin * margin.normalise(terms.margin) +
                settings_.fetch * fetch.normalise(terms.fetch);
            scores_.record(sample, static_cast<float>(weights > 0 ? sum / weights : 0));
        }
    }
    scores_.start();
    scores_.advance(~std::uint64_t{0});
}

float BucketCriteria::p_true(SampleIndex sample) const {
    return knows(sample) ? static_cast<float>(from_steps(p_true_[sample]))
                         : std::numeric_limits<float>::quiet_NaN();
}

std::size_t BucketCriteria::memory_bytes() const {
    return scores_.memory_bytes() + loads_.capacity() * sizeof(float) +
           (p_true_.capacity() + p_other_.capacity()) * sizeof(std::uint16_t);
}

}  // namespace stoker::sidecar
