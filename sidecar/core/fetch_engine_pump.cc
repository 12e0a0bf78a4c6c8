// FetchEngine's choice of the next fetch: turns of parties, demands and prefetches.
#include <algorithm>
#include <iterator>
#include <utility>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using domain::SegmentClass;
using Verdict = CacheRoom::Verdict;

namespace {

// Positions that one event may examine, so that an epoch of residents cannot block the loop.
constexpr std::uint32_t kScanStepsMax = 32768;

}  // namespace

Effects FetchEngine::pump(TimePoint now) {
    pump_fetches(now);
    pump_readahead();
    stop_unwanted();
    effects_.drops = room_.take_drops();
    std::ranges::move(book_.take_replies(), std::back_inserter(effects_.replies));
    return std::exchange(effects_, {});
}

// Parties with something to fetch take turns. While a demand of the own party waits for the rate
// limit, for memory or for room, guests get no turn: they could take what the demand waits for.
// Peers still get turns, because the demand may depend on a peer that waits for this node.
void FetchEngine::pump_fetches(TimePoint now) {
    std::uint32_t steps = kScanStepsMax;
    std::vector<Party> open = book_.parties();
    for (const Party party : open) {
        if (has_place(party, true)) {
            book_.unpark(party);
        }
    }
    while (!open.empty()) {
        const auto next = shares_.next(open);
        const Turn turn =
            book_.is_queue_empty(*next) ? prefetch_one(*next, steps, now) : demand_one(*next, now);
        if (turn == Turn::kWaits && *next == kOwnParty) {
            std::erase_if(open, [](Party party) { return party != kPeerParty; });
        } else if (turn != Turn::kGoOn) {
            open.erase(next);
        }
    }
    pump_fill(steps, now);
    more_to_scan_ = steps == 0;
}

FetchEngine::Turn FetchEngine::demand_one(Party party, TimePoint now) {
    const SampleIndex sample = book_.queue_front(party);
    const SampleRecord& record = table_.at(sample);
    if (record.state != SampleState::kAbsent || !record.demanded) {
        book_.pop_queue(party);
        return Turn::kGoOn;
    }
    const bool in_parts = is_in_parts(sample, party);
    if (in_parts && !has_place(party, true) && room_.may_store(sample, now)) {
        book_.park(party);
        return Turn::kGoOn;
    }
    if (!in_parts && !shares_.has_slot(party, limits_.max_in_flight)) {
        return Turn::kDone;
    }
    const auto reader = chunk_reader(sample, party);
    if (!may_demand(sample, party, reader.has_value(), now)) {
        return Turn::kWaits;
    }
    const Verdict verdict = make_room_for_demand(sample, party, now);
    if (must_wait(sample, verdict, party)) {
        if (!in_parts || table_.parted().empty()) {
            return Turn::kWaits;
        }
        book_.park(party);  // another sample in parts holds the room, perhaps for long
        return Turn::kGoOn;
    }
    book_.pop_queue(party);
    if (!start(sample, verdict, party, now)) {
        settle_bypassed(sample, party);
    } else if (reader) {
        start_chunk(sample, *reader, now);
    }
    return Turn::kGoOn;
}

CacheRoom::Verdict FetchEngine::make_room_for_demand(
    SampleIndex sample, Party party, TimePoint now) {
    Verdict verdict = room_.make_room(sample, now, true, party);
    while (verdict == Verdict::kFull && end_one_hold(sample, party)) {
        verdict = room_.make_room(sample, now, true, party);
    }
    return verdict;
}

// Call if another party demands the sample `wanted` and its share has no room for it. If the own
// party's clients hold more than the own party's share, ends their holds on one sample that was
// fetched for others; otherwise they could fill the window with such samples. False: there is no
// such hold.
bool FetchEngine::end_one_hold(SampleIndex wanted, Party party) {
    if (party == kOwnParty || !table_.has_passed() || !shares_.is_over(kOwnParty) ||
        shares_.is_beyond(table_.record_bytes(wanted), party)) {
        return false;
    }
    std::vector<SampleIndex> held = book_.held_by(kOwnParty);
    std::erase_if(held, [this](SampleIndex sample) {
        return table_.at(sample).segment_class != SegmentClass::kWindow;
    });
    Bytes bytes{};
    for (const SampleIndex sample : held) {
        bytes += table_.record_bytes(sample);
    }
    const auto passed = std::ranges::find_if(held, [this](SampleIndex sample) {
        return table_.was_passed(sample) && !table_.at(sample).verifying;
    });
    if (held.size() < 2 || bytes <= shares_.window_share(kOwnParty) || passed == held.end()) {
        return false;
    }
    const std::uint32_t ended = book_.let_go(*passed);
    counters_.ended_holds += ended;
    table_.at(*passed).holds -= ended;
    room_.reconsider(*passed);
    return true;
}

// A demand may overdraw the origin's rate limit. A demand of a guest or a peer may not, or
// prefetches of the own party would get nothing.
bool FetchEngine::may_demand(
    SampleIndex sample, Party party, bool with_chunk, TimePoint now) const {
    const bool may_read_origin =
        is_urgent(party) ? admission_.rate.allows_urgent(now) : admission_.rate.allows(now);
    return (may_read_origin || comes_from_peer(sample, party)) &&
           fits_memory(sample, party, with_chunk);
}

// Whether a demand waits although the cache is full: samples in flight become evictable when they
// arrive. Peers, and parties beyond their share, wait only for their own fetches.
bool FetchEngine::must_wait(SampleIndex sample, Verdict verdict, Party party) const {
    const bool waits_for_own_only =
        party == kPeerParty || shares_.is_beyond(table_.record_bytes(sample), party);
    const std::uint32_t in_flight =
        waits_for_own_only ? table_.in_flight_of(party) : table_.account().in_flight_samples;
    return verdict == Verdict::kFull && in_flight > 0;
}

// Whether an own sample is first asked of another node. Samples in parts come from the origin.
bool FetchEngine::takes_over(SampleIndex sample) const {
    const Bytes payload = table_.payload_bytes(sample);
    return takes_over_ && chunks_ == nullptr && table_.placement() != nullptr &&
           table_.is_own(sample) && payload <= limits_.memory && !limits_.takes_parts(payload) &&
           takes_over_(sample);
}

// Counts the start of a fetch from the origin that no client waits for.
void FetchEngine::note_origin_start(SampleIndex sample) {
    if (!table_.at(sample).from_peer || taking_over_.contains(sample)) {
        admission_.origin.on_start();
    }
}

// Undoes what start() counted for the origin, if another node has sent the sample (takes_over_).
void FetchEngine::end_take_over(SampleIndex sample, TimePoint now) {
    if (taking_over_.erase(sample) == 0) {
        return;
    }
    admission_.rate.give_back(table_.payload_bytes(sample), now);
    if (!table_.at(sample).demanded) {
        admission_.origin.on_abandoned();
    }
}

// Starts the sample's fetch. False: according to `verdict`, it may not be stored anywhere now.
bool FetchEngine::start(
    SampleIndex sample, Verdict verdict, Party party, TimePoint now, bool slotless) {
    if (verdict != Verdict::kResident && verdict != Verdict::kWindow) {
        return false;
    }
    const SegmentClass segment_class =
        verdict == Verdict::kResident ? SegmentClass::kResident : SegmentClass::kWindow;
    const bool is_foreign = comes_from_peer(sample, party);
    const bool from_peer = is_foreign || takes_over(sample);
    const bool in_parts = !from_peer && limits_.takes_parts(table_.payload_bytes(sample));
    table_.start(sample, segment_class, party, {from_peer, slotless || in_parts, in_parts});
    if (segment_class == SegmentClass::kResident) {
        room_.note_resident(sample);
    }
    shares_.on_turn(party);
    if (from_peer && !is_foreign) {
        taking_over_.insert(sample);
    }
    if (!is_foreign && !in_parts) {
        admission_.rate.take(table_.payload_bytes(sample), now);
    }
    if (!in_parts) {
        admission_.store(segment_class).on_start();  // not as a probe: it takes too long
    }
    ++counters_.fetches;
    counters_.peer_fetches += from_peer ? 1 : 0;
    effects_.fetches.push_back({sample, segment_class, from_peer, in_parts});
    return true;
}

void FetchEngine::pump_readahead() {
    streams_.read_ahead(readahead_positions_, [this](SampleIndex sample) {
        if (table_.is_stored(sample) && table_.is_kept(sample)) {
            effects_.will_need.push_back(sample);
        }
    });
}

}  // namespace stoker::sidecar
