#include "sidecar/core/sampling/bucket_criteria.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kSteps = 65534;

std::uint16_t to_steps(double share) {
    return static_cast<std::uint16_t>(std::clamp(share, 0.0, 1.0) * kSteps + 0.5);
}

double from_steps(std::uint32_t steps) {
    return steps / static_cast<double>(kSteps);
}

// Precomputed values of a function of a probability, in steps of 1/kSteps: logarithms are
// expensive.
template <class Function>
std::vector<float> table_of(const Function& function) {
    std::vector<float> table(kSteps + 1);
    for (std::uint32_t steps = 0; steps <= kSteps; ++steps) {
        table[steps] = static_cast<float>(function(from_steps(steps)));
    }
    return table;
}

const std::vector<float>& cross_entropies() {
    static const std::vector<float> kTable = table_of(cross_entropy_term);
    return kTable;
}

// The least and the greatest value of one criterion.
struct Range {
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();

    void take(double value) {
        least = std::min(least, value);
        most = std::max(most, value);
    }

    // Factor that maps the distance from the least value to 0..`weight`; 0 if all values are equal.
    [[nodiscard]] double factor(double weight) const {
        return most > least ? weight / (most - least) : 0;
    }

    // Factor that maps 0..the greatest value to 0..`weight`; 0 if there is none.
    [[nodiscard]] double factor_from_zero(double weight) const {
        return most > 0 ? weight / most : 0;
    }
};

}  // namespace

double cross_entropy_term(double p_true) {
    return -std::log(std::max(p_true, 0.5 / kSteps));
}

double margin_term(double p_true, double p_other) {
    return 1 - p_true + std::min(p_other, 1 - p_true);
}

double fetch_term(double size, double latency) {
    return 1 / std::max(latency + size, 1e-6);
}

struct BucketCriteria::Ranges {
    Range cross_entropy;
    Range margin;
    Range fetch;
};

BucketCriteria::BucketCriteria(std::uint32_t count, CriteriaSettings settings)
    : settings_(std::move(settings)),
      p_trues_(count, kUnknown),
      scores_(count, kUnknown),
      ranks_(count, 1.0F) {
    STOKER_CHECK(
        settings_.cross_entropy >= 0 && settings_.margin >= 0 && settings_.fetch >= 0,
        "weights must be 0 or more");
    double sizes = 0;
    for (SampleIndex sample = 0; settings_.size_of && sample < count; ++sample) {
        sizes += static_cast<double>(settings_.size_of(sample).count());
    }
    mean_size_ = sizes > 0 ? sizes / count : 1;
}

bool BucketCriteria::record(SampleIndex sample, float loss) {
    if (!std::isfinite(loss)) {
        return false;
    }
    return record_probability(sample, std::exp(-std::max(loss, 0.0F)));
}

bool BucketCriteria::record_probability(SampleIndex sample, float p_true) {
    if (sample >= p_trues_.size() || !std::isfinite(p_true)) {
        return false;
    }
    known_ += knows(sample) ? 0 : 1;
    p_trues_[sample] = to_steps(p_true);
    if (!p_others_.empty()) {
        p_others_[sample] = kUnknown;  // the old value belonged to an earlier visit
    }
    return true;
}

bool BucketCriteria::record_other(SampleIndex sample, float p_other) {
    if (sample >= p_trues_.size() || !knows(sample) || !(p_other >= 0 && p_other <= 1)) {
        return false;
    }
    p_others_.resize(p_trues_.size(), kUnknown);
    p_others_[sample] = to_steps(p_other);
    return true;
}

void BucketCriteria::set_latency_bytes(double bytes) {
    STOKER_CHECK(bytes >= 0, "a latency must be 0 or more");
    latency_bytes_ = bytes;
}

bool BucketCriteria::fetches_differ() const {
    return settings_.bottleneck == Bottleneck::kIo && settings_.size_of;
}

double BucketCriteria::fetch_of(SampleIndex sample) const {
    return fetch_term(
        static_cast<double>(settings_.size_of(sample).count()) / mean_size_,
        latency_bytes_ / mean_size_);
}

// Margin of the sample. Without a reported p_other, its bound 1 - p_true is used.
double BucketCriteria::margin_of(SampleIndex sample) const {
    const double p_true = from_steps(p_trues_[sample]);
    return margin_term(p_true, knows_other(sample) ? from_steps(p_others_[sample]) : 1 - p_true);
}

void BucketCriteria::rescore() {
    Ranges ranges;
    measure(ranges);
    std::vector<std::uint32_t> counts(kSteps + 1);
    score_all(ranges, counts);
    rank_all(counts);
}

void BucketCriteria::measure(Ranges& ranges) {
    const auto& cross_entropy = cross_entropies();
    const bool with_fetches = fetches_differ();
    double sum = 0;
    for (SampleIndex sample = 0; sample < p_trues_.size(); ++sample) {
        const Steps p_true = p_trues_[sample];
        if (p_true == kUnknown) {
            continue;
        }
        ranges.cross_entropy.take(static_cast<double>(cross_entropy[p_true]));
        ranges.margin.take(margin_of(sample));
        if (with_fetches) {
            ranges.fetch.take(fetch_of(sample));
        }
        sum += static_cast<double>(cross_entropy[p_true]);
    }
    mean_loss_ = known_ > 0 ? sum / known_ : 0;
}

// Writes the scores and counts the samples per score.
void BucketCriteria::score_all(const Ranges& ranges, std::vector<std::uint32_t>& counts) {
    const auto& cross_entropy = cross_entropies();
    const bool with_fetches = fetches_differ();
    const bool is_io = settings_.bottleneck == Bottleneck::kIo;
    const double weights = settings_.cross_entropy + settings_.margin + settings_.fetch;
    const double by = weights > 0 ? 1 / weights : 0;
    const double by_entropy = ranges.cross_entropy.factor(settings_.cross_entropy) * by;
    const double by_margin = is_io ? ranges.margin.factor(settings_.margin) * by : 0;
    const double by_fetch = with_fetches ? ranges.fetch.factor_from_zero(settings_.fetch) * by : 0;
    for (SampleIndex sample = 0; sample < p_trues_.size(); ++sample) {
        const Steps p_true = p_trues_[sample];
        if (p_true == kUnknown) {
            continue;
        }
        const double entropy = static_cast<double>(cross_entropy[p_true]);
        double score = by_entropy * (entropy - ranges.cross_entropy.least) +
                       by_margin * (margin_of(sample) - ranges.margin.least);
        if (with_fetches) {
            score += by_fetch * (fetch_of(sample) - ranges.fetch.least);
        }
        scores_[sample] = to_steps(score);
        ++counts[scores_[sample]];
    }
}

void BucketCriteria::rank_all(const std::vector<std::uint32_t>& counts) {
    std::vector<float> rank_of(counts.size());
    std::uint64_t below = 0;
    for (std::size_t steps = 0; steps < counts.size(); ++steps) {
        const auto twice = static_cast<double>(2 * below + counts[steps]);
        rank_of[steps] = static_cast<float>(twice / (2.0 * std::max(1U, known_)));
        below += counts[steps];
    }
    for (SampleIndex sample = 0; sample < scores_.size(); ++sample) {
        ranks_[sample] = scores_[sample] == kUnknown ? 1.0F : rank_of[scores_[sample]];
    }
}

float BucketCriteria::score(SampleIndex sample) const {
    return scores_[sample] == kUnknown ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(from_steps(scores_[sample]));
}

float BucketCriteria::p_true(SampleIndex sample) const {
    return knows(sample) ? static_cast<float>(from_steps(p_trues_[sample]))
                         : std::numeric_limits<float>::quiet_NaN();
}

float BucketCriteria::p_other(SampleIndex sample) const {
    return knows_other(sample) ? static_cast<float>(from_steps(p_others_[sample]))
                               : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace stoker::sidecar
