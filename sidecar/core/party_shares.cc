#include "sidecar/core/party_shares.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Turns of the own party for each turn of the guests.
constexpr std::uint64_t kOwnTurns = 10;

constexpr std::uint32_t kGuestChecksMax = 64;  // verifications per second that a guest may cause

}  // namespace

std::vector<Party>::iterator PartyShares::next(std::vector<Party>& open) const {
    return std::ranges::min_element(
        open, {}, [this](Party party) { return std::max(turns_[party.value()], turn_); });
}

void PartyShares::on_turn(Party party) {
    const std::uint64_t stride = is_beside_owner(party) ? kOwnTurns * guest_count() : 1;
    turn_ = std::max(turns_[party.value()], turn_);  // so that unused turns do not accumulate
    turns_[party.value()] = turn_ + stride;
}

bool PartyShares::has_slot(Party party, std::uint32_t slots) const {
    const std::uint32_t own = table_.slots_of(kOwnParty);
    const std::uint32_t of_peers = table_.in_flight_of(kPeerParty);
    if (party == kOwnParty || party == kPeerParty) {
        return party == kOwnParty ? own < slots : of_peers < limits_.max_in_flight;
    }
    const std::uint32_t of_guests = table_.slots() - own - table_.slots_of(kPeerParty);
    return of_guests < std::max(slots - std::min(own, slots), guest_slots(limits_.max_in_flight));
}

bool PartyShares::has_memory(Party party, Bytes more) const {
    const ByteAccount& account = table_.account();
    const Bytes of_peers = table_.in_flight_bytes_of(kPeerParty);
    const Bytes others = account.in_flight - of_peers;
    const Bytes parts = table_.parted().empty() ? Bytes::zero() : limits_.parts_memory();
    const Bytes reserved = has_peers() ? Bytes{limits_.memory.count() / 4} : Bytes::zero();
    if (party == kPeerParty) {
        return of_peers == Bytes::zero() ||
               of_peers + more <= std::max(reserved, limits_.memory - others - parts);
    }
    return others == Bytes::zero() ||
           others + parts + std::max(reserved, of_peers) + more <= limits_.memory;
}

std::uint64_t PartyShares::guest_count() const {
    return book_.party_count() - (has_owner() ? 1 : 0) - (has_peers() ? 1 : 0);
}

Bytes PartyShares::peer_window() const {
    return has_peers() ? Bytes{limits_.window.count() / 4} : Bytes::zero();
}

Bytes PartyShares::window_share(Party party) const {
    if (party == kPeerParty) {
        return peer_window();
    }
    const std::uint64_t guests = guest_count();
    const Bytes window = limits_.window - peer_window();
    if (guests == 0 || party == kOwnParty) {
        const Bytes standard = guests == 0 ? window : Bytes{window.count() / 2};
        return party == kOwnParty ? standard + borrowed_ : standard;
    }
    const std::uint64_t all = window.count() / 4 * (has_owner() ? 2 : 3);
    return book_.has(party) ? Bytes{all / guests} : Bytes::zero();
}

bool PartyShares::is_beyond(Bytes more, Party party) const {
    const Bytes charged = table_.window_of(party);
    if (charged > Bytes::zero() && charged + more > window_share(party)) {
        return true;
    }
    const Bytes of_guests =
        table_.account().window - table_.window_of(kOwnParty) - table_.window_of(kPeerParty);
    return party != kOwnParty && party != kPeerParty &&
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
