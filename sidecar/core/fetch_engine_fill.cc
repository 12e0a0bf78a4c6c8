// The part of FetchEngine that fetches own samples without a reader.
#include <algorithm>
#include <cstdint>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using Verdict = CacheRoom::Verdict;

namespace {

// Most attempts in one event to evict a sample of another owner in which no sample may leave. Each
// attempt looks at up to 64 samples.
constexpr std::uint32_t kFailedEvictionsMax = 16;

}  // namespace

// The fill (fetches without a reader) comes after readers: it starts fetches only while no demand
// waits, in at most half of the slots. Without readers it has as many slots as prefetches: with
// half of them or fewer, the origin's ConcurrencyLimit could not measure. Peers have other slots.
bool FetchEngine::may_fill(TimePoint now) const {
    const std::uint32_t all = limits_.max_in_flight;
    const bool is_alone = book_.party_count() == (shares_.has_peers() ? 1U : 0U);
    const std::uint32_t slots = is_alone ? all - all / 8 : std::max(all / 2, 1U);
    return book_.are_queues_empty() && fill_.allows(now) && admission_.origin.allows(now) &&
           admission_.rate.allows(now) && room_.may_admit(now) &&
           shares_.has_slot(kOwnParty, slots);
}

void FetchEngine::pump_fill(std::uint32_t& steps, TimePoint now) {
    const std::uint64_t count = table_.size();
    std::uint32_t evictions = kFailedEvictionsMax;
    for (; steps > 0 && fill_.is_open(count) && may_fill(now); --steps) {
        const SampleIndex sample = fill_.next();
        if (!table_.is_own(sample) || table_.is_kept(sample)) {
            fill_.pass();
        } else if (is_refused(sample)) {
            fill_.pass_refused();
        } else if (!has_fill_room(sample, evictions, now)) {
            fill_.pass_full();
        } else if (table_.at(sample).state != SampleState::kAbsent) {
            fill_.pass();  // it is in the window now; a later scan looks at it again
        } else if (!fits_ahead(sample, kOwnParty, chunks_ != nullptr)) {
            return;
        } else {
            start_fill(sample, now);
            fill_.pass();
        }
    }
}

// Whether the sample may be fetched as a resident. Evicts only for a sample that is absent: one in
// the window is not fetched. `evictions`: number of attempts to evict that may still fail; at 0
// nothing is evicted.
bool FetchEngine::has_fill_room(SampleIndex sample, std::uint32_t& evictions, TimePoint now) {
    if (table_.at(sample).state != SampleState::kAbsent || evictions == 0) {
        return room_.judge(sample, now, kOwnParty) == Verdict::kResident;
    }
    const bool has_room = room_.make_own_room(sample, now, kOwnParty);
    evictions -= has_room ? 0 : 1;
    return has_room;
}

// Fetches the sample and the other own samples of its chunk, if it has one: a request brings them
// together.
void FetchEngine::start_fill(SampleIndex first, TimePoint now) {
    const auto fetch = [this, now](SampleIndex sample, bool slotless) {
        start(sample, Verdict::kResident, kOwnParty, now, slotless);
        table_.at(sample).fresh = false;  // fetched for no reader, so its first read is a hit
        note_origin_start(sample);
        fill_.begin(sample);
        if (!table_.at(sample).in_parts) {
            fill_.take(table_.payload_bytes(sample), now);
        }
    };
    fetch(first, false);
    if (chunks_ == nullptr) {
        return;
    }
    for (const SampleIndex sample : chunks_->samples(chunks_->of(first))) {
        const bool is_wanted = table_.is_own(sample) && !is_refused(sample) &&
                               table_.at(sample).state == SampleState::kAbsent;
        if (is_wanted &&
            (!admission_.rate.allows_urgent(now) || !fits_ahead(sample, kOwnParty, false) ||
             !room_.make_own_room(sample, now, kOwnParty))) {
            return;
        }
        if (is_wanted) {
            fetch(sample, true);
        }
    }
}

bool FetchEngine::is_refused(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kRefused ||
           (record.state == SampleState::kAbsent &&
            (record.refusals > 0 || record.failures == UINT8_MAX ||
             !EngineLimits::is_storable(table_.payload_bytes(sample))));
}

// Call before the refusal is recorded. A sample that was refused before is already counted.
void FetchEngine::note_refused(SampleIndex sample) {
    if (table_.is_own(sample) && !is_refused(sample)) {
        fill_.note_refused(sample);
    }
}

std::optional<FillState> FetchEngine::fill_state(TimePoint now) const {
    if (!fill_.is_ordered()) {
        return std::nullopt;
    }
    const SampleSum own = table_.own();
    const SampleSum& stored = table_.own_stored();
    // Ignores readers' fetches and samples in the window: these never end while a job reads.
    const bool is_done = !fill_.is_open(table_.size()) && !fill_.is_fetching();
    const bool is_over =
        is_done && (fill_.lacks_room() || stored.samples + fill_.refused() >= own.samples);
    const bool is_shut = !room_.may_admit(now) || !admission_.origin.is_closed();
    return FillState{own, stored, fill_.refused(), is_over, is_shut};
}

}  // namespace stoker::sidecar
