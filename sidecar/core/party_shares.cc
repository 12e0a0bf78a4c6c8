#include "sidecar/core/party_shares.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Turns of the own party for each turn of the guests.
constexpr std::uint64_t kOwnTurns = 10;

constexpr std::uint32_t kGuestChecksMax = 64;  // verifications a second

}  // namespace

std::vector<Party>::iterator PartyShares::next(std::vector<Party>& open) const {
    return std::ranges::min_element(
        open, {}, [this](Party party) { return std::max(turns_[party.value()], turn_); });
}

void PartyShares::on_turn(Party party) {
    const std::uint64_t stride = is_beside_owner(party) ? kOwnTurns * (book_.party_count() - 1) : 1;
    turn_ = std::max(turns_[party.value()], turn_);  // unused turns do not accumulate
    turns_[party.value()] = turn_ + stride;
}

bool PartyShares::has_slot(Party party, std::uint32_t slots) const {
    const std::uint32_t own = table_.in_flight_of(kOwnParty);
    if (party == kOwnParty) {
        return own < slots;
    }
    const std::uint32_t of_guests = table_.account().in_flight_samples - own;
    return of_guests < std::max(slots - std::min(own, slots), guest_slots(limits_.max_in_flight));
}

// A guest that has left has no share.
Bytes PartyShares::window_share(Party party) const {
    const std::uint64_t guests = book_.party_count() - (has_owner() ? 1 : 0);
    if (guests == 0 || party == kOwnParty) {
        const Bytes standard = guests == 0 ? limits_.window : Bytes{limits_.window.count() / 2};
        return party == kOwnParty ? standard + borrowed_ : standard;
    }
    const std::uint64_t all = limits_.window.count() / 4 * (has_owner() ? 2 : 3);
    return book_.has(party) ? Bytes{all / guests} : Bytes::zero();
}

bool PartyShares::is_beyond(Bytes more, Party party) const {
    const Bytes charged = table_.window_of(party);
    if (charged > Bytes::zero() && charged + more > window_share(party)) {
        return true;
    }
    const Bytes of_guests = table_.account().window - table_.window_of(kOwnParty);
    return party != kOwnParty &&
           of_guests + more > Bytes{limits_.window.count() - limits_.window.count() / 4};
}

bool PartyShares::may_verify(Party party, TimePoint now) {
    if (party == kOwnParty) {
        return true;
    }
    Checks& checks = checks_[party];
    if (now - checks.since >= std::chrono::seconds{1}) {
        checks = {now, 0};
    }
    return checks.count++ < kGuestChecksMax;
}

}  // namespace stoker::sidecar
