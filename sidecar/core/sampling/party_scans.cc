#include "sidecar/core/sampling/party_scans.h"

#include <algorithm>

namespace stoker::sidecar {

SharedScan* PartyScans::find_or_make(Party party, ScanLimits limits, std::uint64_t seed) {
    if (const auto found = scans_.find(party); found != scans_.end()) {
        return &found->second;
    }
    if (party != kOwnParty) {
        std::erase_if(scans_, [](const auto& entry) {
            return entry.first != kOwnParty && entry.second.reader_count() == 0;
        });
        if (scans_.size() - (has(kOwnParty) ? 1 : 0) >= kGuestsMax) {
            return nullptr;
        }
        limits.readers_max = kGuestReadersMax;
        limits.window_samples /= kGuestWindowDivisor;
    }
    return &scans_.try_emplace(party, sample_count_, limits, seed).first->second;
}

void PartyScans::on_stored(SampleIndex sample, bool kept) {
    for (auto& [party, scan] : scans_) {
        scan.on_stored(sample, kept);
    }
}

void PartyScans::on_gone(SampleIndex sample) {
    for (auto& [party, scan] : scans_) {
        scan.on_gone(sample);
    }
}

bool PartyScans::keeps(SampleIndex sample) const {
    return std::ranges::any_of(
        scans_, [sample](const auto& entry) { return entry.second.keeps(sample); });
}

bool PartyScans::is_soon(Party party, SampleIndex sample) const {
    const auto scan = scans_.find(party);
    return scan != scans_.end() && scan->second.is_soon(sample);
}

void PartyScans::victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const {
    const std::size_t before = samples.size();
    for (const bool strangers : {true, false}) {
        for (const auto& [party, scan] : scans_) {
            const bool is_stranger = party != kOwnParty && party != room.party;
            if (is_stranger != strangers) {
                continue;
            }
            RoomRequest theirs = room;
            theirs.urgent = room.urgent || is_stranger;
            theirs.may_go = [this, &room](SampleIndex sample) {
                return (!room.may_go || room.may_go(sample)) &&
                       (room.urgent ||
                        (!is_soon(kOwnParty, sample) && !is_soon(room.party, sample)));
            };
            scan.victims(theirs, samples);
            if (samples.size() > before) {
                return;
            }
        }
    }
}

}  // namespace stoker::sidecar
