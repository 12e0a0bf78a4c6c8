#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "sidecar/core/demand_book.h"
#include "sidecar/core/engine_limits.h"
#include "sidecar/core/sample_table.h"

namespace stoker::sidecar {

// Limits per party (core/eviction/party.h), while several are connected, on turns, fetches in
// flight, window bytes and verifications. Each party has its own queue of demands. Parties take
// turns, ten of the own party to one of the guests; a turn serves a demand or else a prefetch.
// Guests get the slots that the own party leaves unused, plus guest_slots(); they never occupy the
// own party's slots. While
// equally (three quarters while the own party is disconnected); bytes that the window borrowed from
// the grant are the own party's. The own party may hold samples that were fetched for others beyond
// its share until others demand the room. A guest's prefetches, holds and plans do not protect
// samples that are charged to another party. core/sample_table.h says which party that is.
//
// The peers' party (the other nodes of the group) waits for no other party's fetches, because those
// may wait for peers: it has max_in_flight slots of its own, a quarter of the window and a quarter
// of the memory. Its turns are as many as the own party's. Not thread-safe; the objects passed to
// the constructor must outlive it.
class PartyShares {
public:
    PartyShares(const EngineLimits& limits, const SampleTable& table, const DemandBook& book)
        : limits_(limits),
          table_(table),
          book_(book) {}

    // Whether the own party is connected.
    [[nodiscard]] bool has_owner() const { return book_.has(kOwnParty); }

    [[nodiscard]] bool has_peers() const { return book_.has(kPeerParty); }

    // Whether the party is a guest while the own party is connected.
    [[nodiscard]] bool is_beside_owner(Party party) const {
        return party != kOwnParty && party != kPeerParty && has_owner();
    }

    // The party whose turn it is. `open` must not be empty.
    [[nodiscard]] std::vector<Party>::iterator next(std::vector<Party>& open) const;

    // Records the party's turn. Even if the rate limit is the bottleneck, guests cost the own party
    // at most a tenth of its rate.
    void on_turn(Party party);

    // Whether the party may have one more fetch in flight. The own party never waits for guests'
    // fetches to finish. `slots`: how many of max_in_flight this kind of fetch may use.
    [[nodiscard]] bool has_slot(Party party, std::uint32_t slots) const;

    // Whether the party may have `more` payload bytes in flight. Always true if nothing of the
    // party is in flight, except samples that are fetched in parts.
    [[nodiscard]] bool has_memory(Party party, Bytes more) const;

    // Whether the party may fetch a sample in parts. All such samples share EngineLimits::parts_memory().
    [[nodiscard]] bool has_parts_memory(Party party) const {
        return !table_.parted().empty() || has_memory(party, limits_.parts_memory());
    }

    // Bytes of the window that are guaranteed to the party. A guest that has disconnected has none.
    [[nodiscard]] Bytes window_share(Party party) const;

    // Whether `more` window bytes would exceed the party's share; never true for its only sample. A
    // quarter of the window is reserved for the own party, even while it is disconnected.
    [[nodiscard]] bool is_beyond(Bytes more, Party party) const;

    // Whether the window bytes charged to the party exceed its share.
    [[nodiscard]] bool is_over(Party party) const {
        return table_.window_of(party) > window_share(party);
    }

    // Counts one verification; false: too many. The limit keeps a guest that reports every sample
    // as damaged from loading the disk.
    [[nodiscard]] bool may_verify(Party party, TimePoint now);

    // Window bytes borrowed from the grant.
    void set_borrowed(Bytes borrowed) { borrowed_ = borrowed; }

    // Call when the party's last connection has ended.
    void forget(Party party) { checks_.erase(party); }

private:
    struct Checks {
        TimePoint since{};
        std::uint32_t count = 0;
    };

    [[nodiscard]] std::uint64_t guest_count() const;
    [[nodiscard]] Bytes peer_window() const;

    const EngineLimits& limits_;
    const SampleTable& table_;
    const DemandBook& book_;
    Bytes borrowed_{};
    std::array<std::uint64_t, kPartiesMax> turns_{};  // next turn of each; lowest first
    std::uint64_t turn_ = 0;                          // number of the last turn
    std::map<Party, Checks> checks_;                  // verifications that guests requested
};

}  // namespace stoker::sidecar
