// The part of FetchEngine that finds room: where a sample goes, and what has to leave for it.
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::uint32_t kEvictStepsMax = 8192;

// Spares that may be kept for somebody, and are looked at for one need.
constexpr std::uint32_t kKeptSparesMax = 64;

}  // namespace

FetchEngine::Verdict FetchEngine::judge(SampleIndex sample, TimePoint now, Party party) const {
    if (table_.payload_bytes(sample) > limits_.memory) {
        return Verdict::kNever;
    }
    if (aside_) {
        return Verdict::kShut;
    }
    const Bytes bytes = table_.record_bytes(sample);
    if (is_granted(now) && resident_gate_.allows(now) &&
        table_.account().resident + bytes <= grant_.resident_bytes) {
        return Verdict::kResident;
    }
    if (bytes > limits_.window) {
        return Verdict::kNever;
    }
    if (!window_gate_.allows(now)) {
        return Verdict::kShut;
    }
    const bool fits = table_.account().window + bytes <= limits_.window;
    return fits && !is_beyond_share(bytes, party) ? Verdict::kWindow : Verdict::kFull;
}

// A party's share of the window while guests are connected. A guest that has left has none.
Bytes FetchEngine::window_share(Party party) const {
    const std::uint64_t guests = book_.party_count() - (is_own_here() ? 1 : 0);
    if (guests == 0 || party == kOwnParty) {
        return guests == 0 ? limits_.window : Bytes{limits_.window.count() / 2};
    }
    const std::uint64_t all = limits_.window.count() / 4 * (is_own_here() ? 2 : 3);
    return book_.has(party) ? Bytes{all / guests} : Bytes::zero();
}

// Would so much more be beyond the party's share? One sample is not. A quarter of the window stays
// the own party's, whatever guests hold when it comes.
bool FetchEngine::is_beyond_share(Bytes bytes, Party party) const {
    const Bytes charged = table_.window_of(party);
    if (charged > Bytes::zero() && charged + bytes > window_share(party)) {
        return true;
    }
    const Bytes of_guests = table_.account().window - table_.window_of(kOwnParty);
    return party != kOwnParty &&
           of_guests + bytes > Bytes{limits_.window.count() - limits_.window.count() / 4};
}

FetchEngine::Verdict FetchEngine::judge_with_room(
    SampleIndex sample, TimePoint now, bool demanded, Party party) {
    if (make_resident_room(sample, now, party)) {
        return Verdict::kResident;
    }
    const Bytes bytes = table_.record_bytes(sample);
    Verdict verdict = judge(sample, now, party);
    while (verdict == Verdict::kFull &&
           evict_one({party, demanded, is_beyond_share(bytes, party)})) {
        verdict = judge(sample, now, party);
    }
    return verdict;
}

bool FetchEngine::is_granted(TimePoint now) const {
    return !grant_.valid_until || now < *grant_.valid_until;
}

// Evicts residents if that makes the sample one, and if the policy wants it.
bool FetchEngine::make_resident_room(SampleIndex sample, TimePoint now, Party party) {
    const Bytes bytes = table_.record_bytes(sample);
    const Bytes wanted = table_.account().resident + bytes;
    if (aside_ || wanted <= grant_.resident_bytes || bytes > grant_.resident_bytes ||
        !is_granted(now) || !resident_gate_.allows(now) ||
        table_.payload_bytes(sample) > limits_.memory || (ranked_by_guests_ && is_own_here())) {
        return false;
    }

    const auto leaves = [this, party](SampleIndex resident) { return may_leave(resident, party); };
    std::vector<SampleIndex> victims;
    if (!eviction_->make_room(sample, wanted - grant_.resident_bytes, leaves, victims)) {
        return false;
    }
    for (const SampleIndex victim : victims) {
        STOKER_CHECK(may_leave(victim, party), "a policy evicts only what may go");
        ++counters_.evicted_resident_samples;
        drop(victim);
    }
    return table_.account().resident + bytes <= grant_.resident_bytes;
}

// May the resident go to make room for what the party needs? A guest's need undoes nobody's
// prefetch: two guests would evict what the other one needs, without end.
bool FetchEngine::may_leave(SampleIndex sample, Party party) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kStored &&
           record.segment_class == SegmentClass::kResident && !record.doomed && record.holds == 0 &&
           !record.demanded && !record.verifying &&
           (record.needs == 0 ||
            !(party == kOwnParty ? is_near(sample) : streams_.is_near_any(sample)));
}

bool FetchEngine::is_near(SampleIndex sample, Party other) const {
    return streams_.is_near(sample, table_.charged_to(sample), other);
}

// May the sample make room for this need? A party beyond its share makes room itself; others lose
// what they have beyond theirs.
bool FetchEngine::gives_way(SampleIndex sample, const Need& need) const {
    const Party charged = table_.charged_to(sample);
    return charged == need.party ||
           (!need.beyond_share && table_.window_of(charged) > window_share(charged));
}

// Drops a window sample that is needed late: a spare one, and for a demand also one that was
// prefetched.
bool FetchEngine::evict_one(const Need& need) {
    if ((keeper_ != nullptr && evict_as_kept(need)) || evict_spare(need)) {
        return true;
    }
    if (!need.demanded) {
        return false;
    }
    std::uint32_t steps = kEvictStepsMax;
    const auto victim = streams_.farthest(
        [this, &need](SampleIndex sample) { return may_evict(sample) && gives_way(sample, need); },
        steps,
        [this, &need](Party party) {
            return party == need.party || table_.window_of(party) > window_share(party);
        });
    if (!victim) {
        return false;
    }
    ++counters_.evicted_window_samples;
    drop(*victim);
    return true;
}

bool FetchEngine::evict_spare(const Need& need) {
    std::size_t looks = spares_.size();
    for (std::uint32_t kept = 0; looks > 0 && kept < kKeptSparesMax; --looks) {
        const SampleIndex sample = spares_.front();
        spares_.pop_front();
        const bool is_others = need.beyond_share && table_.charged_to(sample) != need.party;
        if (is_others || (keeper_ != nullptr && keeper_->keeps(sample))) {
            spares_.push_back(sample);  // its turn comes when it is kept no more
            ++kept;
            continue;
        }
        table_.at(sample).spare = false;
        if (may_evict(sample) && !is_near(sample, need.party)) {
            ++counters_.evicted_window_samples;
            drop(sample);
            return true;
        }
    }
    return false;
}

// Makes room by the order of the keeper.
bool FetchEngine::evict_as_kept(const Need& need) {
    std::vector<SampleIndex> victims;
    const auto may_go = [this, &need](SampleIndex sample) {
        return may_evict(sample) && !is_near(sample, need.party) && gives_way(sample, need);
    };
    keeper_->victims({need.party, need.demanded, 1, may_go}, victims);
    if (victims.empty()) {
        return false;
    }
    ++counters_.evicted_window_samples;
    drop(victims.front());
    return true;
}

// Has to go: nobody needs or holds it, and no keeper wants it.
bool FetchEngine::is_superfluous(SampleIndex sample) const {
    return table_.is_superfluous(sample) &&
           (table_.at(sample).segment_class != SegmentClass::kWindow || keeper_ == nullptr ||
            !keeper_->keeps(sample));
}

bool FetchEngine::may_evict(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kStored && record.segment_class == SegmentClass::kWindow &&
           record.holds == 0 && !record.demanded && !record.verifying;
}

// After a sample lost a need or a hold: it goes when it was the last one, or becomes a spare.
void FetchEngine::consider(SampleIndex sample) {
    if (is_superfluous(sample)) {
        ++(table_.at(sample).doomed ? counters_.dropped_resident_samples
                                    : counters_.dropped_window_samples);
        drop(sample);
        return;
    }
    SampleRecord& record = table_.at(sample);
    if (!record.spare && may_evict(sample) && !is_near(sample)) {
        record.spare = true;
        spares_.push_back(sample);
    }
}

void FetchEngine::drop(SampleIndex sample) {
    forget_resident(sample);
    table_.remove(sample);
    effects_.drops.push_back(sample);
    if (table_.at(sample).needs > 0) {
        streams_.rewind(sample);
    }
}

// Before a resident, or what was to become one, goes or loses its place in the grant.
void FetchEngine::forget_resident(SampleIndex sample) {
    const SampleRecord& record = table_.at(sample);
    if (record.segment_class == SegmentClass::kResident && !record.doomed) {
        eviction_->on_gone(sample);
    }
}

void FetchEngine::set_eviction(std::unique_ptr<EvictionPolicy> eviction) {
    eviction_ = std::move(eviction);
    for (SampleIndex sample = 0; sample < table_.size(); ++sample) {
        const SampleRecord& record = table_.at(sample);
        const bool has_place =
            record.state == SampleState::kStored || record.state == SampleState::kFetching;
        if (has_place && record.segment_class == SegmentClass::kResident && !record.doomed) {
            eviction_->on_resident(sample, table_.record_bytes(sample));
        }
    }
}

// A shrunken grant takes the residents that the policy names. Those that a client holds, or that
// are on their way, lose only their place in the grant and go when nobody holds them any more.
void FetchEngine::enforce_grant() {
    if (table_.account().resident <= grant_.resident_bytes) {
        return;
    }
    std::vector<SampleIndex> victims;
    eviction_->shrink(table_.account().resident - grant_.resident_bytes, victims);
    for (const SampleIndex sample : victims) {
        forget_resident(sample);
        table_.doom(sample);
        if (table_.is_superfluous(sample)) {
            ++counters_.dropped_resident_samples;
            table_.remove(sample);
            effects_.drops.push_back(sample);
        }
    }
    STOKER_CHECK(
        table_.account().resident <= grant_.resident_bytes, "a policy shrinks by what it is told");
    streams_.rewind_all();
}

// Window samples that an earlier leader left and that nobody has asked for since.
void FetchEngine::sweep_adopted(TimePoint now) {
    if (!sweep_at_ || now < *sweep_at_) {
        return;
    }
    sweep_at_.reset();
    for (SampleIndex sample = 0; sample < table_.size(); ++sample) {
        if (is_superfluous(sample)) {
            ++counters_.dropped_window_samples;
            drop(sample);
        }
    }
}

}  // namespace stoker::sidecar
