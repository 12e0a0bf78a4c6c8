// Losses of ranks here and elsewhere: SamplerService's part that passes them to samplers.
#include <algorithm>
#include <limits>

#include "sidecar/engine/sampler_service.h"
#include "sidecar/engine/shared_importance.h"

namespace stoker::sidecar {

namespace {

// A rank that no job has, used for losses from other nodes: samplers attribute a loss to the local
// rank that sent it.
constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void SamplerService::on_losses(StreamId stream, const local::Losses& losses) {
    const auto found = readers_.find(stream);
    if (found == readers_.end() || found->second.epoch != losses.epoch) {
        return;
    }
    const auto samples = samples_of(losses.samples);
    Job& job = jobs_.at(found->second.job);
    job.losses += samples.size();
    job.sampler->on_losses(found->second.rank, samples, losses.losses);
    job.sampler->on_p_others(samples, losses.p_others);
    source_.importance().on_losses(*job.sampler, samples);
    if (is_spread(job)) {
        on_losses_(found->second.job, losses.epoch, samples, losses.losses);
    }
}

std::optional<std::uint64_t> SamplerService::shared_epoch(const std::string& job) const {
    const auto found = jobs_.find(job);
    if (found == jobs_.end() || found->second.ranks.empty() || !is_spread(found->second)) {
        return std::nullopt;
    }
    std::uint64_t newest = 0;
    for (const auto& [rank, stream] : found->second.ranks) {
        newest = std::max(newest, readers_.at(stream).epoch);
    }
    return newest;
}

void SamplerService::on_losses_elsewhere(
    const std::string& job,
    std::uint64_t epoch,
    std::span<const SampleIndex> samples,
    std::span<const float> losses) {
    const auto ours = shared_epoch(job);
    if (!ours || epoch > *ours + 1 || epoch + 1 < *ours) {
        return;
    }
    Job& told = jobs_.at(job);
    told.losses += samples.size();
    told.sampler->on_losses(kNoRank, samples, losses);
    source_.importance().on_losses(*told.sampler, samples);
}

}  // namespace stoker::sidecar
