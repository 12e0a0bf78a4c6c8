#include "sidecar/core/cache_room.h"

#include "common/base/check.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::uint32_t kEvictStepsMax = 8192;

constexpr std::uint8_t kPrefetchFailuresMax = 3;

// Evictable samples that one call may examine although a keeper still wants them.
constexpr std::uint32_t kKeptSparesMax = 64;

}  // namespace

void CacheRoom::adopt(SampleIndex sample, SegmentClass segment_class) {
    table_.adopt(sample, segment_class);
    if (segment_class == SegmentClass::kWindow) {
        add_spare(sample);
    }
}

void CacheRoom::open(TimePoint now) {
    while (table_.account().window > limits_.window) {
        const SampleIndex sample = spares_.front();
        spares_.pop_front();
        table_.at(sample).spare = false;
        ++counters_.evicted_window_samples;
        drop(sample);
    }
    if (!spares_.empty()) {
        sweep_at_ = now + limits_.adopt_grace;
    }
    enforce_grant();
}

bool CacheRoom::wants(SampleIndex sample, TimePoint now) const {
    const SampleRecord& record = table_.at(sample);
    return record.state == SampleState::kAbsent && record.failures < kPrefetchFailuresMax &&
           record.refusals == 0 && judge(sample, now, kOwnParty) != Verdict::kNever;
}

bool CacheRoom::fits_memory(SampleIndex sample) const {
    return table_.account().in_flight_samples == 0 ||
           table_.account().in_flight + table_.payload_bytes(sample) <= limits_.memory;
}

// Whether the sample may be resident, if the grant had room.
bool CacheRoom::may_keep(SampleIndex sample, TimePoint now) const {
    return !aside_ && (!grant_.valid_until || now < *grant_.valid_until) &&
           admission_.resident.allows(now) && table_.payload_bytes(sample) <= limits_.memory &&
           table_.record_bytes(sample) <= resident_limit();
}

// Window bytes beyond the standard window belong to the grant, also those that a shrinking window
// still has.
Bytes CacheRoom::resident_limit() const {
    const Bytes lent = std::max(borrowed(), table_.account().window - limits_.window);
    return grant_.resident_bytes.is_unlimited() ? grant_.resident_bytes
                                                : grant_.resident_bytes - lent;
}

bool CacheRoom::fits_window(Bytes bytes) const {
    const ByteAccount& account = table_.account();
    return account.window + std::min(account.doomed, borrowed()) + bytes <= window();
}

CacheRoom::Verdict CacheRoom::judge(SampleIndex sample, TimePoint now, Party party) const {
    if (table_.payload_bytes(sample) > limits_.memory) {
        return Verdict::kNever;
    }
    if (aside_) {
        return Verdict::kShut;
    }
    const Bytes bytes = table_.record_bytes(sample);
    if (may_keep(sample, now) && table_.account().resident + bytes <= resident_limit()) {
        return Verdict::kResident;
    }
    if (bytes > window()) {
        return Verdict::kNever;
    }
    if (!admission_.window.allows(now)) {
        return Verdict::kShut;
    }
    return fits_window(bytes) && !shares_.is_beyond(bytes, party) ? Verdict::kWindow
                                                                  : Verdict::kFull;
}

CacheRoom::Verdict CacheRoom::make_room(
    SampleIndex sample, TimePoint now, bool demanded, Party party) {
    if (make_resident_room(sample, now, party)) {
        return Verdict::kResident;
    }
    const Bytes bytes = table_.record_bytes(sample);
    Verdict verdict = judge(sample, now, party);
    while (verdict == Verdict::kFull &&
           evict_one({party, demanded, shares_.is_beyond(bytes, party)})) {
        verdict = judge(sample, now, party);
    }
    return verdict;
}

// Evicts residents to make the sample resident, if the policy agrees.
bool CacheRoom::make_resident_room(SampleIndex sample, TimePoint now, Party party) {
    const Bytes wanted = table_.account().resident + table_.record_bytes(sample);
    if (!may_keep(sample, now) || wanted <= resident_limit() ||
        (ranked_by_guests_ && shares_.has_owner())) {
        return false;
    }
    const auto leaves = [this, party](SampleIndex resident) { return may_leave(resident, party); };
    std::vector<SampleIndex> victims;
    if (!table_.eviction().make_room(sample, wanted - resident_limit(), leaves, victims)) {
        return false;
    }
    for (const SampleIndex victim : victims) {
        STOKER_CHECK(may_leave(victim, party), "a policy evicts only what may go");
        ++counters_.evicted_resident_samples;
        drop(victim);
    }
    return table_.account().resident + table_.record_bytes(sample) <= resident_limit();
}

// Whether the resident may be evicted for the party. A guest never evicts what was prefetched for
// others: two guests would evict each other's samples without end.
bool CacheRoom::may_leave(SampleIndex sample, Party party) const {
    const SampleRecord& record = table_.at(sample);
    return record.is_idle() && record.is_granted() &&
           (record.needs == 0 ||
            !(party == kOwnParty ? is_near(sample) : streams_.is_near_any(sample)));
}

bool CacheRoom::is_near(SampleIndex sample, Party other) const {
    return table_.at(sample).needs > 0 &&
           streams_.is_near(sample, table_.charged_to(sample), other);
}

// Whether the sample may be evicted for this need. A party beyond its share evicts only its own
// samples; other parties lose what they have beyond their shares.
bool CacheRoom::gives_way(SampleIndex sample, const Need& need) const {
    const Party charged = table_.charged_to(sample);
    return charged == need.party || (!need.beyond_share && shares_.is_over(charged));
}

// Drops a window sample that is needed late: one that the keeper names, an evictable one, or for a
// demand also a prefetched one.
bool CacheRoom::evict_one(const Need& need) {
    auto victim = kept_victim(need);
    if (!victim) {
        victim = spare_victim(need);
    }
    if (!victim && need.demanded) {
        victim = farthest_victim(need);
    }
    if (victim) {
        ++counters_.evicted_window_samples;
        drop(*victim);
    }
    return victim.has_value();
}

std::optional<SampleIndex> CacheRoom::kept_victim(const Need& need) const {
    if (keeper_ == nullptr) {
        return std::nullopt;
    }
    std::vector<SampleIndex> victims;
    const auto may_go = [this, &need](SampleIndex sample) {
        return may_evict(sample) && !is_near(sample, need.party) && gives_way(sample, need);
    };
    keeper_->victims({need.party, need.demanded, 1, may_go}, victims);
    return victims.empty() ? std::nullopt : std::optional{victims.front()};
}

std::optional<SampleIndex> CacheRoom::spare_victim(const Need& need) {
    std::size_t looks = spares_.size();
    for (std::uint32_t kept = 0; looks > 0 && kept < kKeptSparesMax; --looks) {
        const SampleIndex sample = spares_.front();
        spares_.pop_front();
        const bool is_others = need.beyond_share && table_.charged_to(sample) != need.party;
        if (is_others || (keeper_ != nullptr && keeper_->keeps(sample))) {
            spares_.push_back(sample);  // evictable once the keeper no longer wants it
            ++kept;
            continue;
        }
        table_.at(sample).spare = false;
        if (may_evict(sample) && !is_near(sample, need.party)) {
            return sample;
        }
    }
    return std::nullopt;
}

std::optional<SampleIndex> CacheRoom::farthest_victim(const Need& need) {
    std::uint32_t steps = kEvictStepsMax;
    return streams_.farthest(
        [this, &need](SampleIndex sample) { return may_evict(sample) && gives_way(sample, need); },
        steps,
        [this, &need](Party party) { return party == need.party || shares_.is_over(party); });
}

bool CacheRoom::may_evict(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    return record.is_idle() && record.segment_class == SegmentClass::kWindow;
}

void CacheRoom::reconsider(SampleIndex sample) {
    if (!drop_if_superfluous(sample) && !table_.at(sample).spare && may_evict(sample) &&
        !is_near(sample)) {
        add_spare(sample);
    }
}

void CacheRoom::add_spare(SampleIndex sample) {
    table_.at(sample).spare = true;
    spares_.push_back(sample);
}

// Drops the sample unless it is needed, held or wanted by a keeper.
bool CacheRoom::drop_if_superfluous(SampleIndex sample) {
    const bool is_doomed = table_.at(sample).doomed;
    if (!table_.is_superfluous(sample) ||
        (!is_doomed && keeper_ != nullptr && keeper_->keeps(sample))) {
        return false;
    }
    ++(is_doomed ? counters_.dropped_resident_samples : counters_.dropped_window_samples);
    drop(sample);
    return true;
}

void CacheRoom::drop(SampleIndex sample) {
    drops_.push_back(sample);
    lose(sample);
}

void CacheRoom::lose(SampleIndex sample) {
    table_.remove(sample);
    if (table_.at(sample).needs > 0) {
        streams_.rewind(sample);
    }
}

void CacheRoom::enforce_grant() {
    // A window that borrowed from a larger grant. Samples that a client holds or awaits stay.
    const Bytes most = limits_.window + grant_.resident_bytes;
    while (table_.account().window > most && evict_one({kOwnParty, true, true})) {
    }
    // The searches above are bounded and spare guests' samples.
    for (SampleIndex sample = 0; sample < table_.size() && table_.account().window > most;
         ++sample) {
        if (may_evict(sample)) {
            ++counters_.evicted_window_samples;
            drop(sample);
        }
    }
    const Bytes resident = table_.account().resident;
    const Bytes limit = resident_limit();
    if (resident <= limit) {
        return;
    }
    std::vector<SampleIndex> victims;
    table_.eviction().shrink(resident - limit, victims);
    for (const SampleIndex sample : victims) {
        table_.doom(sample);
        drop_if_superfluous(sample);
    }
    STOKER_CHECK(table_.account().resident <= limit, "a policy shrinks by what it is told");
    streams_.rewind_all();
}

void CacheRoom::sweep(TimePoint now) {
    if (!sweep_at_ || now < *sweep_at_) {
        return;
    }
    sweep_at_.reset();
    for (SampleIndex sample = 0; sample < table_.size(); ++sample) {
        drop_if_superfluous(sample);
    }
}

}  // namespace stoker::sidecar
