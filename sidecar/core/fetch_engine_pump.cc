// The part of FetchEngine that chooses what is fetched next.
#include <algorithm>
#include <utility>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

// Positions that one event may look at, so that an epoch of residents cannot hold up the loop.
constexpr std::uint32_t kScanStepsMax = 32768;

// A prefetch that failed so often is left to the demand, which reports the reason.
constexpr std::uint8_t kPrefetchFailuresMax = 3;

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
            !origin_rate_.allows_urgent(now) || (in_flight && !fits_memory(sample))) {
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
           judge(sample, now) != Verdict::kNever;
}

}  // namespace stoker::sidecar
