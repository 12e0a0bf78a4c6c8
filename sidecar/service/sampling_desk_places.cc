// The part of SamplingDesk that says how many jobs each party may have.
#include <algorithm>

#include <fmt/core.h>

#include "sidecar/service/sampling_desk.h"

namespace stoker::sidecar {

Status SamplingDesk::make_place(Party party) {
    const auto is_of_party = [party](const Job& job) { return job.party == party; };
    if (party == kOwnParty) {
        return make_place(limits_.samplers, is_of_party);
    }
    STOKER_TRY_VOID(make_place(limits_.guest_samplers, is_of_party));
    return make_place(
        limits_.guests_samplers, [](const Job& job) { return job.party != kOwnParty; });
}

// For one more of those that count: where there are too many, the one of them that nobody draws
// from for longest goes.
Status SamplingDesk::make_place(std::size_t places, const std::function<bool(const Job&)>& counts) {
    const auto have =
        std::ranges::count_if(jobs_, [&counts](const auto& entry) { return counts(entry.second); });
    if (static_cast<std::size_t>(have) < places) {
        return {};
    }
    auto oldest = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
        const bool is_idle = job->second.ranks.empty() && counts(job->second);
        if (is_idle &&
            (oldest == jobs_.end() || job->second.last_used < oldest->second.last_used)) {
            oldest = job;
        }
    }
    if (oldest == jobs_.end()) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("{} jobs read this dataset under contracts already", have));
    }
    jobs_.erase(oldest);
    return {};
}

}  // namespace stoker::sidecar
