#include "operator/core/allocation/reclaim_book.h"

#include <algorithm>
#include <cstdint>

namespace stoker::control {

namespace {

// A reclaim of at most 1/kWorthTelling of the resident bytes gets no Event.
constexpr std::uint64_t kWorthTelling = 20;

bool is_worth_telling(const Reclaim& reclaim) {
    return (reclaim.resident - reclaim.granted).count() > reclaim.resident.count() / kWorthTelling;
}

}  // namespace

void ReclaimBook::watch(const std::vector<Reclaim>& reclaims, TimePoint now) {
    std::map<Place, Entry> entries;
    begun_.clear();
    became_late_.clear();
    for (const Reclaim& reclaim : reclaims) {
        const Place place{reclaim.pool, reclaim.node, reclaim.dataset_uid};
        Entry entry{reclaim, now, false};
        const auto known = entries_.find(place);
        if (known != entries_.end() && known->second.reclaim.granted <= reclaim.granted) {
            entry.since = known->second.since;
            entry.is_late = known->second.is_late;
        } else if (is_worth_telling(reclaim)) {
            begun_.push_back(reclaim);
        }
        const Duration grace =
            std::max<Duration>(kGraceMin, std::chrono::seconds{reclaim.grace_seconds});
        if (!entry.is_late && now - entry.since > grace) {
            entry.is_late = true;
            became_late_.push_back(reclaim);
        }
        entries[place] = std::move(entry);
    }
    entries_ = std::move(entries);
}

std::vector<Reclaim> ReclaimBook::late() const {
    std::vector<Reclaim> result;
    for (const auto& [place, entry] : entries_) {
        if (entry.is_late) {
            result.push_back(entry.reclaim);
        }
    }
    return result;
}

}  // namespace stoker::control
