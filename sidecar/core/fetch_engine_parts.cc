// The part of FetchEngine that decides on samples which are fetched in parts.
#include <algorithm>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

bool FetchEngine::is_in_parts(SampleIndex sample, Party party) const {
    return limits_.takes_parts(table_.payload_bytes(sample)) && !comes_from_peer(sample, party);
}

// Whether the party may exceed the limit of samples in parts: guests and peers must wait instead.
bool FetchEngine::is_urgent(Party party) const {
    return party != kPeerParty && !shares_.is_beside_owner(party);
}

bool FetchEngine::is_urgent(SampleIndex sample) const {
    return table_.at(sample).demanded &&
           std::ranges::any_of(
               book_.parties_waiting(sample), [this](Party party) { return is_urgent(party); });
}

// Whether the party may start one more sample in parts. All guests together have one place.
bool FetchEngine::has_place(Party party, bool demanded) const {
    const auto& parted = table_.parted();
    const bool is_free = parted.size() < kPartedMax;
    if (shares_.is_beside_owner(party)) {
        return is_free && std::ranges::none_of(parted, [this](SampleIndex sample) {
                   return shares_.is_beside_owner(table_.at(sample).party);
               });
    }
    const auto is_awaited = [this](SampleIndex sample) { return is_urgent(sample); };
    return is_free || (demanded && is_urgent(party) && parted.size() == kPartedMax &&
                       std::ranges::none_of(parted, is_awaited));
}

// Whether somebody wants the sample. A resident is also wanted as long as its party is connected,
// which may read it again.
bool FetchEngine::is_wanted(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    if (record.demanded || record.doomed) {
        return record.demanded;
    }
    return record.needs > 0 ||
           (record.is_granted() && (fill_.has(sample) || book_.has(record.party)));
}

void FetchEngine::stop_unwanted() {
    std::ranges::copy_if(
        table_.parted(), std::back_inserter(effects_.stops), [this](SampleIndex sample) {
            return !is_wanted(sample);
        });
}

Effects FetchEngine::on_stopped(SampleIndex sample, TimePoint now) {
    admission_.origin.on_abandoned();
    room_.lose(sample);
    fill_.end(sample);
    fill_.rewind(sample);
    book_.queue_again(sample);
    return pump(now);
}

bool FetchEngine::take_part(SampleIndex sample, Bytes bytes, TimePoint now) {
    const bool urgent = is_urgent(sample);
    const bool is_fill = fill_.has(sample);
    const SampleRecord& record = table_.at(sample);
    const bool may_fill = !is_fill || record.demanded || record.needs > 0 || fill_.allows(now);
    if (!may_fill || !(urgent ? admission_.rate.allows_urgent(now) : admission_.rate.allows(now))) {
        return false;
    }
    admission_.rate.take(bytes, now);
    if (is_fill) {
        fill_.take(bytes, now);
    }
    return true;
}

}  // namespace stoker::sidecar
