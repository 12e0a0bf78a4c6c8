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

// What each party may take of turns, fetches in flight, window bytes and verifications while other
// parties are connected. Each has a queue of demands of its own; they take turns, ten of the own
// party to one of guests, with a demand or else with what it needs next. Guests have the slots that
// the own party leaves, and guest_slots() beside them; they take none of its. While guests are
// connected the own party has half the window, and they the other half in equal shares (without an
// own connection three quarters); what a guest prefetched, holds or plans keeps nothing that is
// charged to another party. core/sample_table.h says what is charged to whom. Not thread-safe; what
// it is made of must outlive it.
class PartyShares {
public:
    PartyShares(const EngineLimits& limits, const SampleTable& table, const DemandBook& book)
        : limits_(limits),
          table_(table),
          book_(book) {}

    // Is the own party connected?
    [[nodiscard]] bool has_owner() const { return book_.has(kOwnParty); }

    // A guest, while the own party is connected.
    [[nodiscard]] bool is_beside_owner(Party party) const {
        return party != kOwnParty && has_owner();
    }

    // Whose turn it is. `open` is not empty.
    [[nodiscard]] std::vector<Party>::iterator next(std::vector<Party>& open) const;

    // The party took its turn. A rate limit that binds costs the own party a tenth at most.
    void on_turn(Party party);

    // May the party have one more fetch in flight? The own party never waits for the fetches of
    // guests to come back. `slots`: of max_in_flight.
    [[nodiscard]] bool has_slot(Party party, std::uint32_t slots) const;

    // Would so much more of the window be beyond the party's share? One sample is not. A quarter of
    // the window stays the own party's, whatever guests hold when it comes.
    [[nodiscard]] bool is_beyond(Bytes more, Party party) const;

    // Is more of the window charged to the party than its share?
    [[nodiscard]] bool is_over(Party party) const {
        return table_.window_of(party) > window_share(party);
    }

    // Counts one verification. A guest that calls everything damaged would keep the disk busy.
    [[nodiscard]] bool may_verify(Party party, TimePoint now);

    // The party has no connection any more.
    void forget(Party party) { checks_.erase(party); }

private:
    struct Checks {
        TimePoint since{};
        std::uint32_t count = 0;
    };

    [[nodiscard]] Bytes window_share(Party party) const;

    const EngineLimits& limits_;
    const SampleTable& table_;
    const DemandBook& book_;
    std::array<std::uint64_t, kPartiesMax> turns_{};  // when each is next; the lowest goes first
    std::uint64_t turn_ = 0;                          // of the party that went last
    std::map<Party, Checks> checks_;                  // verifications that guests asked for
};

}  // namespace stoker::sidecar
