// The half of FetchEngine that chooses: what is fetched next, where it goes, and what has to leave
// for it.
#include <algorithm>
#include <utility>

#include "common/base/prng.h"
#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

// Positions that one event may look at, so that an epoch of residents cannot hold up the loop.
constexpr std::uint32_t kScanStepsMax = 32768;
constexpr std::uint32_t kEvictStepsMax = 8192;

// A prefetch that failed so often is left to the demand, which reports the reason.
constexpr std::uint8_t kPrefetchFailuresMax = 3;

// A fixed uniform order of samples, independent of ids and plans: who goes first when a grant
// shrinks.
std::uint64_t lot_of(SampleIndex sample) {
    return Prng{sample}();
}

}  // namespace

Effects FetchEngine::pump(TimePoint now) {
    more_to_scan_ = false;
    if (pump_demand(now)) {
        pump_prefetch(now);
    }
    pump_readahead();
    auto replies = book_.take_replies();
    std::ranges::move(replies, std::back_inserter(effects_.replies));
    return std::exchange(effects_, {});
}

// True when nothing demanded waits for a slot or for room, so that prefetches may go on.
bool FetchEngine::pump_demand(TimePoint now) {
    while (!demand_queue_.empty()) {
        const SampleIndex sample = demand_queue_.front();
        const SampleRecord& record = table_.at(sample);
        if (record.state != SampleState::kAbsent || !record.demanded) {
            demand_queue_.pop_front();
            continue;
        }
        const bool in_flight = table_.account().in_flight_samples > 0;
        if (table_.account().in_flight_samples >= limits_.max_in_flight ||
            (in_flight && !fits_memory(sample))) {
            return false;
        }
        const Verdict verdict = judge_with_room(sample, now, true);
        if (verdict == Verdict::kFull && in_flight) {
            return false;  // what is under way can be evicted once it has arrived
        }
        demand_queue_.pop_front();
        if (verdict == Verdict::kResident || verdict == Verdict::kWindow) {
            start(
                sample,
                verdict == Verdict::kResident ? SegmentClass::kResident : SegmentClass::kWindow,
                now);
        } else {
            settle_bypassed(sample);
        }
    }
    return true;
}

void FetchEngine::pump_prefetch(TimePoint now) {
    // Some slots stay free, so that a demand does not wait behind prefetches.
    const std::uint32_t slots = limits_.max_in_flight - limits_.max_in_flight / 8;
    std::uint32_t steps = kScanStepsMax;
    const auto wanted = [this, now](SampleIndex sample) { return wants(sample, now); };
    while (table_.account().in_flight_samples < slots && origin_gate_.allows(now) &&
           origin_rate_.allows(now)) {
        const auto candidate = streams_.nearest(wanted, steps);
        if (!candidate || !fits_memory(candidate->sample)) {
            break;
        }
        const Verdict verdict = judge_with_room(candidate->sample, now, false);
        if (verdict != Verdict::kResident && verdict != Verdict::kWindow) {
            break;
        }
        start(
            candidate->sample,
            verdict == Verdict::kResident ? SegmentClass::kResident : SegmentClass::kWindow,
            now);
        origin_gate_.on_start();
    }
    more_to_scan_ = steps == 0;
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

void FetchEngine::start(SampleIndex sample, SegmentClass segment_class, TimePoint now) {
    table_.start(sample, segment_class);
    origin_rate_.take(table_.payload_bytes(sample), now);
    gate_of(segment_class).on_start();
    ++counters_.fetches;
    effects_.fetches.push_back({sample, segment_class});
}

FetchEngine::Verdict FetchEngine::judge(SampleIndex sample, TimePoint now) const {
    if (table_.payload_bytes(sample) > limits_.memory) {
        return Verdict::kNever;
    }
    const Bytes bytes = table_.record_bytes(sample);
    const bool granted = !grant_.valid_until || now < *grant_.valid_until;
    if (granted && resident_gate_.allows(now) &&
        table_.account().resident + bytes <= grant_.resident_bytes) {
        return Verdict::kResident;
    }
    if (bytes > limits_.window) {
        return Verdict::kNever;
    }
    if (!window_gate_.allows(now)) {
        return Verdict::kShut;
    }
    return table_.account().window + bytes <= limits_.window ? Verdict::kWindow : Verdict::kFull;
}

FetchEngine::Verdict FetchEngine::judge_with_room(
    SampleIndex sample, TimePoint now, bool demanded) {
    Verdict verdict = judge(sample, now);
    while (verdict == Verdict::kFull && evict_one(demanded)) {
        verdict = judge(sample, now);
    }
    return verdict;
}

// Drops a window sample that is needed late: a spare one, and for a demand also one that was
// prefetched.
bool FetchEngine::evict_one(bool demanded) {
    while (!spares_.empty()) {
        const SampleIndex sample = spares_.front();
        spares_.pop_front();
        table_.at(sample).spare = false;
        if (may_evict(sample) && !streams_.is_near(sample)) {
            ++counters_.evicted_window_samples;
            drop(sample);
            return true;
        }
    }
    if (!demanded) {
        return false;
    }
    std::uint32_t steps = kEvictStepsMax;
    const auto victim =
        streams_.farthest([this](SampleIndex sample) { return may_evict(sample); }, steps);
    if (!victim) {
        return false;
    }
    ++counters_.evicted_window_samples;
    drop(*victim);
    return true;
}

bool FetchEngine::may_evict(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kStored && record.segment_class == SegmentClass::kWindow &&
           record.holds == 0 && !record.demanded && !record.verifying;
}

bool FetchEngine::fits_memory(SampleIndex sample) const {
    return table_.account().in_flight_samples == 0 ||
           table_.account().in_flight + table_.payload_bytes(sample) <= limits_.memory;
}

bool FetchEngine::wants(SampleIndex sample, TimePoint now) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kAbsent && record.failures < kPrefetchFailuresMax &&
           judge(sample, now) != Verdict::kNever;
}

// After a sample lost a need or a hold: it goes when it was the last one, or becomes a spare.
void FetchEngine::consider(SampleIndex sample) {
    if (table_.is_superfluous(sample)) {
        ++(table_.at(sample).doomed ? counters_.dropped_resident_samples
                                    : counters_.dropped_window_samples);
        drop(sample);
        return;
    }
    SampleRecord& record = table_.at(sample);
    if (!record.spare && may_evict(sample) && !streams_.is_near(sample)) {
        record.spare = true;
        spares_.push_back(sample);
    }
}

void FetchEngine::drop(SampleIndex sample) {
    table_.remove(sample);
    effects_.drops.push_back(sample);
    if (table_.at(sample).needs > 0) {
        streams_.rewind(sample);
    }
}

// A shrunken grant takes residents by lot. Those that a client holds, or that are on their way,
// lose only their place in the grant and go when nobody holds them any more.
void FetchEngine::enforce_grant() {
    if (table_.account().resident <= grant_.resident_bytes) {
        return;
    }
    std::vector<std::pair<std::uint64_t, SampleIndex>> residents;
    for (SampleIndex sample = 0; sample < table_.size(); ++sample) {
        const SampleRecord& record = table_.at(sample);
        if (record.segment_class == SegmentClass::kResident && !record.doomed) {
            residents.emplace_back(lot_of(sample), sample);
        }
    }
    std::ranges::sort(residents);
    while (table_.account().resident > grant_.resident_bytes && !residents.empty()) {
        const SampleIndex sample = residents.back().second;
        residents.pop_back();
        table_.doom(sample);
        if (table_.is_superfluous(sample)) {
            ++counters_.dropped_resident_samples;
            table_.remove(sample);
            effects_.drops.push_back(sample);
        }
    }
    streams_.rewind_all();
}

// Window samples that an earlier leader left and that nobody has asked for since.
void FetchEngine::sweep_adopted(TimePoint now) {
    if (!sweep_at_ || now < *sweep_at_) {
        return;
    }
    sweep_at_.reset();
    for (SampleIndex sample = 0; sample < table_.size(); ++sample) {
        if (table_.is_superfluous(sample)) {
            ++counters_.dropped_window_samples;
            drop(sample);
        }
    }
}

}  // namespace stoker::sidecar
