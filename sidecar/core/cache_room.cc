#include "sidecar/core/cache_room.h"

#include "common/base/check.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::uint32_t kEvictStepsMax = 8192;

constexpr std::uint8_t kPrefetchFailuresMax = 3;

// Limit of evictable samples that one call may pass over because the WindowKeeper wants them.
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

// Whether the sample may become resident, provided that room can be made in the grant.
bool CacheRoom::may_keep(SampleIndex sample, TimePoint now) const {
    return may_admit(now) && is_storable(sample) && table_.record_bytes(sample) <= resident_limit();
}

// The grant without the bytes that the window has borrowed from it, or still uses while it shrinks.
Bytes CacheRoom::resident_limit() const {
    const Bytes lent = std::max(borrowed(), table_.account().window - limits_.window);
    return grant_.resident_bytes.is_unlimited() ? grant_.resident_bytes
                                                : grant_.resident_bytes - lent;
}

// Resident bytes once the sample is resident, plus the bytes to reserve for own samples.
Bytes CacheRoom::room_needed(SampleIndex sample) const {
    const Bytes reserved = table_.is_own(sample) ? Bytes::zero() : table_.own_missing();
    return table_.account().resident + table_.record_bytes(sample) + reserved;
}

bool CacheRoom::is_storable(SampleIndex sample) const {
    const Bytes payload = table_.payload_bytes(sample);
    return EngineLimits::is_storable(payload) &&
           (!limits_.takes_parts(payload) || table_.record_bytes(sample) <= disk_room_);
}

bool CacheRoom::fits_window(Bytes bytes) const {
    const ByteAccount& account = table_.account();
    return account.window + std::min(account.doomed, borrowed()) + bytes <= window();
}

bool CacheRoom::may_store(SampleIndex sample, TimePoint now) const {
    return may_keep(sample, now) ||
           (!aside_ && is_storable(sample) && admission_.window.allows(now) &&
            table_.record_bytes(sample) <= window());
}

CacheRoom::Verdict CacheRoom::judge(SampleIndex sample, TimePoint now, Party party) const {
    if (!is_storable(sample)) {
        return Verdict::kNever;
    }
    if (aside_) {
        return Verdict::kShut;
    }
    const Bytes bytes = table_.record_bytes(sample);
    if (may_keep(sample, now) && room_needed(sample) <= resident_limit()) {
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
    if (!may_keep(sample, now) || room_needed(sample) <= resident_limit()) {
        return false;
    }
    const bool is_own = table_.is_own(sample);
    if (is_own && make_own_room(sample, now, party)) {
        return true;
    }
    if (ranked_by_guests_ && shares_.has_owner()) {
        return false;
    }
    const auto leaves = [this, party, is_own](SampleIndex resident) {
        return may_leave(resident, party) && (is_own || !table_.is_own(resident));
    };
    std::vector<SampleIndex> victims;
    const Bytes needed = room_needed(sample) - resident_limit();
    if (!table_.eviction().make_room(sample, needed, leaves, victims)) {
        return false;
    }
    for (const SampleIndex victim : victims) {
        STOKER_CHECK(may_leave(victim, party), "victims must pass `may_go`");
        ++counters_.evicted_resident_samples;
        drop(victim);
    }
    return room_needed(sample) <= resident_limit();
}

bool CacheRoom::make_own_room(SampleIndex sample, TimePoint now, Party party) {
    if (!may_keep(sample, now)) {
        return false;
    }
    if (room_needed(sample) > resident_limit()) {
        evict_foreign(room_needed(sample) - resident_limit(), party);
    }
    return room_needed(sample) <= resident_limit();
}

// Evicts the oldest residents that other nodes own, to make room for a sample that this node owns.
void CacheRoom::evict_foreign(Bytes needed, Party party) {
    std::size_t looks = foreign_.size();
    std::uint32_t kept = 0;
    for (Bytes freed{}; looks > 0 && freed < needed && kept < kKeptSparesMax; --looks) {
        const SampleIndex sample = foreign_.front();
        foreign_.pop_front();
        if (table_.is_own(sample) || !table_.at(sample).is_granted()) {
            continue;
        }
        if (!may_leave(sample, party)) {
            foreign_.push_back(sample);
            ++kept;
            continue;
        }
        freed += table_.record_bytes(sample);
        ++counters_.evicted_resident_samples;
        drop(sample);
    }
}

// Dooms residents that other nodes own first, when the grant has become smaller.
void CacheRoom::doom_foreign() {
    while (!foreign_.empty() && table_.account().resident > resident_limit()) {
        const SampleIndex sample = foreign_.front();
        foreign_.pop_front();
        if (!table_.is_own(sample) && table_.at(sample).is_granted()) {
            table_.doom(sample);
            drop_if_superfluous(sample);
        }
    }
}

void CacheRoom::set_placement(std::shared_ptr<const Placement> placement) {
    table_.set_placement(std::move(placement));
    find_foreign();
}

void CacheRoom::find_foreign() {
    foreign_.clear();
    for (SampleIndex sample = 0; table_.placement() != nullptr && sample < table_.size();
         ++sample) {
        if (table_.at(sample).is_granted() && !table_.is_own(sample)) {
            foreign_.push_back(sample);
        }
    }
}

void CacheRoom::note_resident(SampleIndex sample) {
    if (table_.is_own(sample)) {
        return;
    }
    if (foreign_.size() >= 2 * table_.size()) {
        find_foreign();  // most entries are stale
    } else {
        foreign_.push_back(sample);
    }
}

// Whether the resident may be evicted for `party` (sidecar/core/eviction/party.h). A guest never
// evicts what was prefetched for others: two guests would evict each other's samples without end.
// The own party may not either while it has no stream: its fill is less urgent than guests' plans.
bool CacheRoom::may_leave(SampleIndex sample, Party party) const {
    const SampleRecord& record = table_.at(sample);
    return record.is_idle() && record.is_granted() &&
           (record.needs == 0 ||
            !(party == kOwnParty && streams_.has_own_stream() ? is_near(sample)
                                                              : streams_.is_near_any(sample)));
}

bool CacheRoom::is_near(SampleIndex sample, Party other) const {
    return table_.at(sample).needs > 0 &&
           streams_.is_near(sample, table_.charged_to(sample), other);
}

// Whether the sample may be evicted for `need`. A party above its share of the window evicts
// only samples charged to itself; another party may also evict samples of parties above their
// shares.
bool CacheRoom::gives_way(SampleIndex sample, const Need& need) const {
    const Party charged = table_.charged_to(sample);
    return charged == need.party || (!need.beyond_share && shares_.is_over(charged));
}

// Drops a window sample that is needed late or never: one that keeper_ names; else one that no plan
// needs; else, if a client waits (demanded), the prefetched sample that will be read last.
bool CacheRoom::evict_one(const Need& need) {
    const Bytes charged = table_.window_of(need.party);
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
    return victim.has_value() || table_.window_of(need.party) < charged;
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
    std::size_t looks = std::min<std::size_t>(spares_.size(), kEvictStepsMax);
    for (std::uint32_t kept = 0; looks > 0 && kept < kKeptSparesMax; --looks) {
        const SampleIndex sample = spares_.front();
        spares_.pop_front();
        const bool is_others = need.beyond_share && table_.charged_to(sample) != need.party;
        if (is_others || (keeper_ != nullptr && keeper_->keeps(sample))) {
            spares_.push_back(sample);  // evictable for others, or once the keeper lets it go
            kept += is_others ? 0 : 1;
            if (!is_others && may_evict(sample)) {
                pass_to_owner(sample);  // kept_victim() spares what the owner needs soon
            }
            continue;
        }
        table_.at(sample).spare = false;
        if (!may_evict(sample)) {
            continue;
        }
        if (!is_near(sample, need.party)) {
            return sample;
        }
        pass_to_owner(sample);
    }
    return std::nullopt;
}

std::optional<SampleIndex> CacheRoom::farthest_victim(const Need& need) {
    std::uint32_t steps = kEvictStepsMax;
    std::vector<SampleIndex> passed;
    auto victim = streams_.farthest(
        [this, &need, &passed](SampleIndex sample) {
            if (may_evict(sample)) {
                passed.push_back(sample);
            }
            return may_evict(sample) && gives_way(sample, need);
        },
        steps,
        [this, &need](Party party) { return party == need.party || shares_.is_over(party); });
    // farthest() has moved the cursors of the streams that it searched past these samples, so these
    // streams no longer protect them; other streams may need them sooner.
    for (const SampleIndex sample : passed) {
        if (sample != victim) {
            reconsider(sample);
        }
    }
    if (!victim && !passed.empty()) {
        victim = kept_victim(need);
        return victim ? victim : spare_victim(need);
    }
    return victim;
}

bool CacheRoom::may_evict(SampleIndex sample) const {
    const SampleRecord& record = table_.at(sample);
    return record.is_idle() && record.segment_class == SegmentClass::kWindow;
}

void CacheRoom::reconsider(SampleIndex sample) {
    if (drop_if_superfluous(sample) || !may_evict(sample)) {
        return;
    }
    if (is_near(sample)) {
        pass_to_owner(sample);
    } else if (!table_.at(sample).spare) {
        add_spare(sample);
    }
}

// Charges an idle window sample to the owner if it was fetched for a guest and only the owner still
// needs it soon: it would fill the guest's share, and the guest could not evict it.
void CacheRoom::pass_to_owner(SampleIndex sample) {
    const Party party = table_.charged_to(sample);
    if (party != kOwnParty && streams_.is_near_for(kOwnParty, sample) &&
        !streams_.is_near_for(party, sample)) {
        table_.charge_to_owner(sample);
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
    // The window may still have borrowed bytes. Samples that a client holds or awaits stay.
    const Bytes most = limits_.window + grant_.resident_bytes;
    while (table_.account().window > most && evict_one({kOwnParty, true, true})) {
    }
    // The searches above look at a limited number of samples, and not at samples of guests; this
    // loop looks at all samples.
    for (SampleIndex sample = 0; sample < table_.size() && table_.account().window > most;
         ++sample) {
        if (may_evict(sample)) {
            ++counters_.evicted_window_samples;
            drop(sample);
        }
    }
    const Bytes limit = resident_limit();
    if (table_.account().resident <= limit) {
        return;
    }
    doom_foreign();
    std::vector<SampleIndex> victims;
    if (table_.account().resident > limit) {
        table_.eviction().shrink(table_.account().resident - limit, victims);
    }
    for (const SampleIndex sample : victims) {
        table_.doom(sample);
        drop_if_superfluous(sample);
    }
    STOKER_CHECK(table_.account().resident <= limit, "the policy evicted too few bytes");
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
