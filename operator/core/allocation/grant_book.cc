#include "operator/core/allocation/grant_book.h"

#include <algorithm>

namespace stoker::control {

Bytes grant_in_force(const ObservedResidency& word) {
    const Bytes told = word.granted.value_or(Bytes::zero());
    return told.is_unlimited() ? Bytes::zero() : told;
}

GrantBook::Place GrantBook::place_of(const ObservedResidency& word) {
    return {word.node, word.dataset_uid, word.pool};
}

void GrantBook::observe(const std::vector<ObservedResidency>& words, TimePoint now) {
    const bool begins = !began_at_;
    if (begins) {
        began_at_ = now;
    }
    std::map<Place, Entry> entries;
    std::set<Place> unheard;
    for (const ObservedResidency& word : words) {
        const Place place = place_of(word);
        Entry entry;
        if (const auto known = entries_.find(place); known != entries_.end()) {
            entry = std::move(known->second);
        }
        const bool expected = begins || unheard_.contains(place);
        if (expected && word.live && !word.granted) {
            unheard.insert(place);
            entry.believed = std::max(entry.believed, word.promised);
        }
        note(word, entry);
        entries[place] = std::move(entry);
    }
    entries_ = std::move(entries);
    unheard_ = std::move(unheard);
}

void GrantBook::note(const ObservedResidency& word, Entry& entry) {
    entry.word = word;
    if (word.granted) {
        if (word.opening) {
            const Bytes filled = entry.open ? entry.believed : Bytes::zero();
            entry.resident = std::max({entry.resident, word.resident, filled});
        } else {
            entry.resident = word.resident;
        }
        entry.open = !word.opening;
        const Bytes grant = grant_in_force(word);
        const bool confirmed = !entry.sent || *entry.sent == grant;
        entry.believed = confirmed ? grant : std::max(entry.believed, grant);
    } else if (word.live) {
        // No fresh report: keeps the last known bytes, or more if a status shows more.
        entry.resident = std::max(entry.resident, word.resident);
    } else {
        entry = {word, std::nullopt, Bytes::zero(), word.resident};
    }
}

std::vector<Holding> GrantBook::holdings() const {
    std::vector<Holding> result;
    for (const auto& [place, entry] : entries_) {
        const ObservedResidency& word = entry.word;
        Holding holding{word.pool, word.node, word.dataset_uid, entry.resident, entry.resident};
        holding.ns = word.ns;
        holding.last_used = word.last_used;
        holding.outstanding = std::max(entry.believed, grant_in_force(word));
        if (unheard_.contains(place)) {
            // An earlier operator's grant stays as it is until its size is known.
            holding.granted = entry.believed;
            holding.in_flight = true;
        } else if (entry.sent) {
            holding.granted = *entry.sent;
            holding.in_flight =
                word.granted ? *word.granted != *entry.sent : word.live && word.reached;
        } else if (word.granted || entry.believed > Bytes::zero()) {
            holding.granted = word.granted.value_or(entry.believed);
        }
        result.push_back(std::move(holding));
    }
    return result;
}

bool GrantBook::is_settled(TimePoint now) const {
    return unheard_.empty() || (began_at_ && now - *began_at_ >= valid_ + kSlack);
}

std::vector<Grant> GrantBook::take(const AllocationPlan& plan) {
    std::vector<Grant> sent;
    for (const Grant& grant : plan.grants) {
        bool may = true;
        for (auto it = entries_.lower_bound({grant.node, grant.dataset_uid, ""});
             it != entries_.end() && it->first.node == grant.node &&
             it->first.dataset_uid == grant.dataset_uid;
             ++it) {
            may = may && !unheard_.contains(it->first);
            if (may) {
                Entry& entry = it->second;
                entry.sent = grant.resident_bytes;
                entry.believed = std::max(entry.believed, grant.resident_bytes);
            }
        }
        if (may) {
            sent.push_back(grant);
        }
    }
    return sent;
}

}  // namespace stoker::control
