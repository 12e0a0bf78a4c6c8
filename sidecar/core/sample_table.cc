#include "sidecar/core/sample_table.h"

#include <utility>

#include "common/base/check.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/never_evict.h"

namespace stoker::sidecar {

using domain::SegmentClass;

namespace {

constexpr std::uint8_t kRefusalsMax = 7;  // largest count that SampleRecord::refusals can hold

}  // namespace

SampleTable::SampleTable(const SampleSizes& sizes, std::unique_ptr<EvictionPolicy> eviction)
    : sizes_(sizes),
      eviction_(eviction != nullptr ? std::move(eviction) : std::make_unique<NeverEvict>()),
      records_(sizes.count()) {}

void SampleTable::set_eviction(std::unique_ptr<EvictionPolicy> eviction) {
    eviction_ = std::move(eviction);
    for (SampleIndex sample = 0; sample < size(); ++sample) {
        if (records_[sample].is_granted()) {
            eviction_->on_resident(sample, record_bytes(sample));
        }
    }
}

void SampleTable::set_placement(std::shared_ptr<const Placement> placement) {
    placement_ = std::move(placement);
    own_resident_ = Bytes::zero();
    for (SampleIndex sample = 0; placement_ != nullptr && sample < size(); ++sample) {
        if (records_[sample].is_granted() && placement_->is_own(sample)) {
            own_resident_ += record_bytes(sample);
        }
    }
    own_stored_ = {};
    for (SampleIndex sample = 0; sample < size(); ++sample) {
        if (is_own_stored(sample)) {
            ++own_stored_.samples;
            own_stored_.bytes += payload_bytes(sample);
        }
    }
}

SampleSum SampleTable::own() const {
    return placement_ == nullptr ? SampleSum{size(), sizes_.total()}
                                 : SampleSum{placement_->own_samples(), placement_->own_payload()};
}

Bytes SampleTable::record_bytes(SampleIndex sample) const {
    return Bytes{domain::record_bytes(payload_bytes(sample).count())};
}

void SampleTable::adopt(SampleIndex sample, SegmentClass segment_class) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "only an absent sample can be adopted");
    record.state = SampleState::kStored;
    record.segment_class = segment_class;
    record.party = kOwnParty;
    add_bytes(sample);
    count_stored(sample);
    tell_stored(sample);
}

void SampleTable::start(SampleIndex sample, SegmentClass segment_class, Party party, FetchWay way) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "at most one fetch of a sample in flight");
    record.state = SampleState::kFetching;
    record.segment_class = segment_class;
    record.fresh = true;
    record.party = party;
    record.from_peer = way.from_peer;
    record.slotless = true;
    add_bytes(sample);
    Charge& charge = charges_[party.value()];
    ++charge.in_flight_samples;
    if (!way.slotless) {
        take_slot(sample);
    }
    record.in_parts = way.in_parts;
    if (way.in_parts) {
        parted_.push_back(sample);
    } else {
        charge.in_flight += payload_bytes(sample);
        account_.in_flight += payload_bytes(sample);
    }
    ++account_.in_flight_samples;
}

void SampleTable::give_slot(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(
        record.state == SampleState::kFetching && !record.slotless, "only a fetch has a slot");
    record.slotless = true;
    --charges_[record.party.value()].slots;
    --slots_;
}

void SampleTable::take_slot(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(
        record.state == SampleState::kFetching && record.slotless, "a fetch takes one slot");
    record.slotless = false;
    ++charges_[record.party.value()].slots;
    ++slots_;
}

void SampleTable::finish(SampleIndex sample) {
    leave_flight(sample);
    SampleRecord& record = records_[sample];
    record.state = SampleState::kStored;
    record.failures = 0;
    record.refusals = 0;
    count_stored(sample);
    tell_stored(sample);
}

void SampleTable::refuse(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "only an absent sample can be refused");
    record.state = SampleState::kRefused;
    if (record.refusals < kRefusalsMax) {
        ++record.refusals;
    }
}

void SampleTable::end_refusal(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kRefused, "the sample is not refused");
    record.state = SampleState::kAbsent;
}

void SampleTable::remove(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    if (record.state == SampleState::kStored) {
        uncount_stored(sample);
    } else {
        leave_flight(sample);
    }
    take_bytes(sample);
    passed_.erase(sample);
    record.state = SampleState::kAbsent;
    record.segment_class = SegmentClass::kAbsent;
    record.doomed = false;
    record.verifying = false;
    record.fresh = false;
    record.from_peer = false;
    if (listener_ != nullptr) {
        listener_->on_gone(sample);
    }
}

void SampleTable::doom(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.is_granted(), "only a resident can lose its grant, and only once");
    take_bytes(sample);
    if (record.state == SampleState::kStored) {
        uncount_stored(sample);
    }
    record.doomed = true;
    add_bytes(sample);
    if (record.state == SampleState::kStored) {
        count_stored(sample);
    }
}

bool SampleTable::is_superfluous(SampleIndex sample) const {
    const SampleRecord& record = records_[sample];
    return record.is_idle() &&
           (record.doomed || (record.segment_class == SegmentClass::kWindow && record.needs == 0));
}

Bytes& SampleTable::class_bytes(const SampleRecord& record) {
    if (record.doomed) {
        return account_.doomed;
    }
    return record.segment_class == SegmentClass::kResident ? account_.resident : account_.window;
}

Party SampleTable::charged_to(SampleIndex sample) const {
    const SampleRecord& record = records_[sample];
    return record.segment_class == SegmentClass::kWindow ? record.party : kOwnParty;
}

void SampleTable::charge_to_owner(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(
        record.state == SampleState::kStored && record.segment_class == SegmentClass::kWindow,
        "only a stored window sample can be charged to the owner");
    take_bytes(sample);
    record.party = kOwnParty;
    record.fresh = false;  // fetched for the guest, so not counted as the owner's fetch
    add_bytes(sample);
    passed_.insert(sample);
}

void SampleTable::add_bytes(SampleIndex sample) {
    const SampleRecord& record = records_[sample];
    class_bytes(record) += record_bytes(sample);
    if (record.is_granted()) {
        own_resident_ += placement_ != nullptr && placement_->is_own(sample) ? record_bytes(sample)
                                                                             : Bytes::zero();
        eviction_->on_resident(sample, record_bytes(sample));
    } else if (record.segment_class == SegmentClass::kWindow) {
        charges_[record.party.value()].window += record_bytes(sample);
    }
}

void SampleTable::take_bytes(SampleIndex sample) {
    const SampleRecord& record = records_[sample];
    class_bytes(record) -= record_bytes(sample);
    if (record.is_granted()) {
        own_resident_ -= placement_ != nullptr && placement_->is_own(sample) ? record_bytes(sample)
                                                                             : Bytes::zero();
        eviction_->on_gone(sample);
    } else if (record.segment_class == SegmentClass::kWindow) {
        charges_[record.party.value()].window -= record_bytes(sample);
    }
}

// Counter of the record's class. Doomed residents count as window samples: they stay no longer.
std::uint64_t& SampleTable::stored_count(const SampleRecord& record) {
    return record.is_granted() ? account_.resident_samples : account_.window_samples;
}

bool SampleTable::is_own_stored(SampleIndex sample) const {
    const SampleRecord& record = records_[sample];
    return record.state == SampleState::kStored && record.is_granted() && is_own(sample);
}

void SampleTable::count_stored(SampleIndex sample) {
    ++stored_count(records_[sample]);
    if (is_own_stored(sample)) {
        ++own_stored_.samples;
        own_stored_.bytes += payload_bytes(sample);
    }
}

void SampleTable::uncount_stored(SampleIndex sample) {
    --stored_count(records_[sample]);
    if (is_own_stored(sample)) {
        --own_stored_.samples;
        own_stored_.bytes -= payload_bytes(sample);
    }
}

void SampleTable::tell_stored(SampleIndex sample) {
    if (listener_ != nullptr) {
        listener_->on_stored(sample, records_[sample].segment_class == SegmentClass::kResident);
    }
}

void SampleTable::leave_flight(SampleIndex sample) {
    STOKER_CHECK(records_[sample].state == SampleState::kFetching, "the sample is not in flight");
    --account_.in_flight_samples;
    SampleRecord& record = records_[sample];
    Charge& charge = charges_[record.party.value()];
    --charge.in_flight_samples;
    if (record.in_parts) {
        std::erase(parted_, sample);
    } else {
        account_.in_flight -= payload_bytes(sample);
        charge.in_flight -= payload_bytes(sample);
    }
    record.in_parts = false;
    if (!record.slotless) {
        give_slot(sample);
    }
    record.slotless = false;
}

}  // namespace stoker::sidecar
