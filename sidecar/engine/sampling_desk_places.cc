// The part of SamplingDesk that says how many jobs each party may have.
#include <algorithm>

#include <fmt/core.h>

#include "sidecar/engine/sampling_desk.h"

namespace stoker::sidecar {

Status SamplingDesk::make_place(const SamplerOrder& order) {
    const auto is_of_party = [&order](const Job& job) { return job.order.party == order.party; };
    if (order.party == kOwnParty) {
        return make_place(limits_.samplers, is_of_party);
    }
    const auto is_guests = [](const Job& job) { return job.order.party != kOwnParty; };
    STOKER_TRY_VOID(make_place(limits_.guest_samplers, is_of_party));
    STOKER_TRY_VOID(make_place(limits_.guests_samplers, is_guests));
    if (source_.is_per_rank(order.contract)) {
        return {};
    }
    const auto is_large = [this](const Job& job) {
        return !source_.is_per_rank(job.order.contract);
    };
    const auto places = [this](std::uint64_t samples) {
        return std::max<std::size_t>(samples / std::max(sample_count_, 1U), 1);
    };
    STOKER_TRY_VOID(make_place(places(limits_.guest_sampler_samples), [&](const Job& job) {
        return is_large(job) && is_of_party(job);
    }));
    return make_place(places(limits_.guests_sampler_samples), [&](const Job& job) {
        return is_large(job) && is_guests(job);
    });
}

// How many more the rank may draw before it reads.
std::size_t SamplingDesk::outstanding_left(const Reader& reader) const {
    const auto left = [](std::size_t most, std::size_t have) {
        return most - std::min(most, have);
    };
    const std::size_t own = left(limits_.outstanding, reader.unread_total);
    if (jobs_.at(reader.job).order.party == kOwnParty) {
        return own;
    }
    std::size_t guests = 0;
    for (const auto& [stream, other] : readers_) {
        guests += jobs_.at(other.job).order.party != kOwnParty ? other.unread_total : 0;
    }
    return std::min(own, left(limits_.guests_outstanding, guests) / 2);
}

// For one more of those that count: where there are too many, the one of them that nobody draws
// from for longest goes.
Status SamplingDesk::make_place(std::size_t places, const std::function<bool(const Job&)>& counts) {
    const auto have =
        std::ranges::count_if(jobs_, [&counts](const auto& entry) { return counts(entry.second); });
    if (static_cast<std::size_t>(have) < places) {
        return {};
    }
    if (!forget_idle(counts)) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("{} jobs read this dataset under contracts already", have));
    }
    return {};
}

// The one of those that count that nobody has drawn from for longest goes. False: there is none.
bool SamplingDesk::forget_idle(const std::function<bool(const Job&)>& counts) {
    auto oldest = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        const bool is_idle = job->second.ranks.empty() && counts(job->second);
        if (is_idle &&
            (oldest == jobs_.end() || job->second.last_used < oldest->second.last_used)) {
            oldest = job;
        }
    }
    if (oldest == jobs_.end()) {
        return false;
    }
    jobs_.erase(oldest);
    return true;
}

// Where there are too many samplers of this kind, idle ones of the party make place.
Result<std::unique_ptr<Sampler>> SamplingDesk::make_sampler(
    const SamplerOrder& order, std::uint32_t rank) {
    const auto counts = [&order](const Job& job) {
        return job.order.party == order.party && job.order.contract == order.contract;
    };
    auto sampler = source_.make(node_, order, rank);
    while (!sampler && sampler.error().code == ErrorCode::kResourceExhausted &&
           forget_idle(counts)) {
        sampler = source_.make(node_, order, rank);
    }
    return sampler;
}

}  // namespace stoker::sidecar
