#include "sidecar/core/eviction/aggregated_importance.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Unrated samples count as fully important.
float rank_in(std::span<const float> ranks, SampleIndex sample) {
    return sample < ranks.size() ? ranks[sample] : 1.0F;
}

}  // namespace

void AggregatedImportance::set_job(JobId id, Job job) {
    STOKER_CHECK(job.weight >= 0 && job.ranks != nullptr, "a job needs a weight >= 0 and ranks");
    jobs_[id] = std::move(job);
}

void AggregatedImportance::remove_job(JobId id) {
    jobs_.erase(id);
}

bool AggregatedImportance::set_weight(JobId id, double weight) {
    STOKER_CHECK(weight >= 0, "a job needs a weight >= 0");
    const auto job = jobs_.find(id);
    return job != jobs_.end() && std::exchange(job->second.weight, weight) != weight;
}

float AggregatedImportance::value(SampleIndex sample) const {
    double sum = 0;
    double weights = 0;
    for (const auto& [id, job] : jobs_) {
        if (const auto ranks = job.ranks(); job.weight > 0 && !ranks.empty()) {
            sum += job.weight * job.reads.at(rank_in(ranks, sample));
            weights += job.weight;
        }
    }
    if (weights == 0) {
        return 0;
    }
    const double bytes =
        size_of_ ? static_cast<double>(std::max<std::uint64_t>(1, size_of_(sample).count())) : 1.0;
    return static_cast<float>(sum / weights / bytes);
}

void AggregatedImportance::expect(std::span<const SampleIndex> samples) const {
    for (const auto& [id, job] : jobs_) {
        const auto ranks = job.ranks();
        for (const SampleIndex sample : samples) {
            if (sample < ranks.size()) {
                __builtin_prefetch(&ranks[sample]);
            }
        }
    }
}

bool AggregatedImportance::unimportant(SampleIndex sample) const {
    bool any = false;
    for (const auto& [id, job] : jobs_) {
        if (job.weight == 0) {
            continue;
        }
        any = true;
        if (rank_in(job.ranks(), sample) >= job.unimportant_below) {
            return false;
        }
    }
    return any;
}

}  // namespace stoker::sidecar
