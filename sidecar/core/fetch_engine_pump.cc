// The part of FetchEngine that chooses what is fetched next.
#include <algorithm>
#include <utility>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

// Positions that one event may look at, so that an epoch of residents cannot hold up the loop.
constexpr std::uint32_t kScanStepsMax = 32768;

// Turns of the own party for each turn of the guests.
constexpr std::uint64_t kOwnTurns = 10;

// A prefetch that failed so often is left to the demand, which reports the reason.
constexpr std::uint8_t kPrefetchFailuresMax = 3;

}  // namespace

Effects FetchEngine::pump(TimePoint now) {
    more_to_scan_ = false;
    pump_fetches(now);
    pump_readahead();
    auto replies = book_.take_replies();
    std::ranges::move(replies, std::back_inserter(effects_.replies));
    return std::exchange(effects_, {});
}

// The parties that have something to fetch take turns. While our party has, guests have together
// one turn of eleven, so that a rate limit that binds costs us a tenth; otherwise they have all.
// While a demand of the own party waits for a slot or for room, nobody takes them.
void FetchEngine::pump_fetches(TimePoint now) {
    std::uint32_t steps = kScanStepsMax;
    std::vector<Party> open = book_.parties();
    while (!open.empty()) {
        const auto next = std::ranges::min_element(
            open, {}, [this](Party party) { return std::max(turns_[party.value()], turn_); });
        const Turn turn =
            book_.is_queue_empty(*next) ? prefetch_one(*next, steps, now) : demand_one(*next, now);
        if (turn == Turn::kWaits && *next == kOwnParty) {
            break;
        }
        if (turn != Turn::kGoOn) {
            open.erase(next);
        }
    }
    more_to_scan_ = steps == 0;
}

FetchEngine::Turn FetchEngine::demand_one(Party party, TimePoint now) {
    const SampleIndex sample = book_.queue_front(party);
    const SampleRecord& record = table_.at(sample);
    if (record.state != SampleState::kAbsent || !record.demanded) {
        book_.pop_queue(party);
        return Turn::kGoOn;
    }
    const bool in_flight = table_.account().in_flight_samples > 0;
    if (!has_slot(party, limits_.max_in_flight) || !may_demand(party, now) ||
        (in_flight && !fits_memory(sample))) {
        return Turn::kWaits;
    }
    const Verdict verdict = judge_with_room(sample, now, true, party);
    const bool gets_room = is_beyond_share(table_.record_bytes(sample), party)
                               ? table_.in_flight_of(party) > 0
                               : in_flight;
    if (verdict == Verdict::kFull && gets_room) {
        return Turn::kWaits;  // what is under way can be evicted once it has arrived
    }
    book_.pop_queue(party);
    if (verdict == Verdict::kResident || verdict == Verdict::kWindow) {
        start(sample, verdict, party, now);
    } else {
        settle_bypassed(sample);
    }
    return Turn::kGoOn;
}

FetchEngine::Turn FetchEngine::prefetch_one(Party party, std::uint32_t& steps, TimePoint now) {
    // Some slots stay free, so that a demand does not wait behind prefetches.
    const std::uint32_t slots = limits_.max_in_flight - limits_.max_in_flight / 8;
    if (!has_slot(party, slots) || !origin_gate_.allows(now) || !origin_rate_.allows(now)) {
        return Turn::kDone;
    }
    const auto wanted = [this, now](SampleIndex sample) { return wants(sample, now); };
    const auto candidate = streams_.nearest(wanted, steps, party);
    if (!candidate || !fits_memory(candidate->sample)) {
        return Turn::kDone;
    }
    const Verdict verdict = judge_with_room(candidate->sample, now, false, party);
    if (verdict != Verdict::kResident && verdict != Verdict::kWindow) {
        return Turn::kDone;
    }
    start(candidate->sample, verdict, party, now);
    if (book_.party_count() > 1) {
        streams_.take(*candidate);  // or another party has its turn first, and evicts it
    }
    origin_gate_.on_start();
    return Turn::kGoOn;
}

// The own party never waits for the fetches of guests to come back.
bool FetchEngine::has_slot(Party party, std::uint32_t slots) const {
    const std::uint32_t own = table_.in_flight_of(kOwnParty);
    if (party == kOwnParty) {
        return own < slots;
    }
    const std::uint32_t of_guests = table_.account().in_flight_samples - own;
    return of_guests < std::max(slots - std::min(own, slots), guest_slots(limits_.max_in_flight));
}

// Between two turns of the party.
std::uint64_t FetchEngine::stride(Party party) const {
    return party == kOwnParty || !is_own_here() ? 1 : kOwnTurns * (book_.party_count() - 1);
}

// A demand may run ahead of the rate; a guest's not, or it would leave nothing to our prefetches.
bool FetchEngine::may_demand(Party party, TimePoint now) const {
    return party == kOwnParty || !is_own_here() ? origin_rate_.allows_urgent(now)
                                                : origin_rate_.allows(now);
}

void FetchEngine::pump_readahead() {
    streams_.read_ahead(readahead_positions_, [this](SampleIndex sample) {
        const SampleRecord& record = table_.at(sample);
        if (record.state == SampleState::kStored &&
            record.segment_class == SegmentClass::kResident) {
            effects_.will_need.push_back(sample);
        }
    });
}

void FetchEngine::start(SampleIndex sample, Verdict verdict, Party party, TimePoint now) {
    const SegmentClass segment_class =
        verdict == Verdict::kResident ? SegmentClass::kResident : SegmentClass::kWindow;
    table_.start(sample, segment_class, party);
    turn_ = std::max(turns_[party.value()], turn_);  // what a party did not use is not saved up
    turns_[party.value()] = turn_ + stride(party);
    origin_rate_.take(table_.payload_bytes(sample), now);
    gate_of(segment_class).on_start();
    if (segment_class == SegmentClass::kResident) {
        eviction_->on_resident(sample, table_.record_bytes(sample));
    }
    ++counters_.fetches;
    effects_.fetches.push_back({sample, segment_class});
}

bool FetchEngine::fits_memory(SampleIndex sample) const {
    return table_.account().in_flight_samples == 0 ||
           table_.account().in_flight + table_.payload_bytes(sample) <= limits_.memory;
}

bool FetchEngine::wants(SampleIndex sample, TimePoint now) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kAbsent && record.failures < kPrefetchFailuresMax &&
           judge(sample, now, kOwnParty) != Verdict::kNever;
}

}  // namespace stoker::sidecar
