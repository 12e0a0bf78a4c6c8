#include "sidecar/core/sample_table.h"

#include "common/base/check.h"
#include "common/domain/segment_format.h"

namespace stoker::sidecar {

using domain::SegmentClass;

Bytes SampleTable::record_bytes(SampleIndex sample) const {
    return Bytes{domain::record_bytes(payload_bytes(sample).count())};
}

void SampleTable::adopt(SampleIndex sample, SegmentClass segment_class) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "adopts only what is absent");
    record.state = SampleState::kStored;
    record.segment_class = segment_class;
    record.party = kOwnParty;
    add_bytes(sample);
    ++stored_count(record);
    tell_stored(sample);
}

void SampleTable::start(SampleIndex sample, SegmentClass segment_class, Party party) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "at most one fetch of a sample in flight");
    record.state = SampleState::kFetching;
    record.segment_class = segment_class;
    record.fresh = true;
    record.party = party;
    add_bytes(sample);
    ++charges_[party.value()].in_flight_samples;
    account_.in_flight += payload_bytes(sample);
    ++account_.in_flight_samples;
}

void SampleTable::finish(SampleIndex sample) {
    leave_flight(sample);
    SampleRecord& record = records_[sample];
    record.state = SampleState::kStored;
    record.failures = 0;
    ++stored_count(record);
    tell_stored(sample);
}

void SampleTable::abandon(SampleIndex sample) {
    leave_flight(sample);
    SampleRecord& record = records_[sample];
    take_bytes(sample);
    record.state = SampleState::kAbsent;
    record.segment_class = SegmentClass::kAbsent;
    record.doomed = false;
    tell_gone(sample);
}

void SampleTable::refuse(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kAbsent, "only an absent sample can be refused");
    record.state = SampleState::kRefused;
}

void SampleTable::remove(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(record.state == SampleState::kStored, "only a stored sample can be removed");
    take_bytes(sample);
    --stored_count(record);
    record.state = SampleState::kAbsent;
    record.segment_class = SegmentClass::kAbsent;
    record.doomed = false;
    record.verifying = false;
    record.fresh = false;
    tell_gone(sample);
}

void SampleTable::doom(SampleIndex sample) {
    SampleRecord& record = records_[sample];
    STOKER_CHECK(
        record.segment_class == SegmentClass::kResident && !record.doomed,
        "only a resident can lose its grant, and only once");
    take_bytes(sample);
    if (record.state == SampleState::kStored) {
        --stored_count(record);
    }
    record.doomed = true;
    add_bytes(sample);
    if (record.state == SampleState::kStored) {
        ++stored_count(record);
    }
}

bool SampleTable::is_superfluous(SampleIndex sample) const {
    const SampleRecord& record = records_[sample];
    if (record.state != SampleState::kStored || record.holds > 0 || record.demanded ||
        record.verifying) {
        return false;
    }
    return record.doomed || (record.segment_class == SegmentClass::kWindow && record.needs == 0);
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

void SampleTable::add_bytes(SampleIndex sample) {
    const SampleRecord& record = records_[sample];
    class_bytes(record) += record_bytes(sample);
    if (record.segment_class == SegmentClass::kWindow) {
        charges_[record.party.value()].window += record_bytes(sample);
    }
}

void SampleTable::take_bytes(SampleIndex sample) {
    const SampleRecord& record = records_[sample];
    class_bytes(record) -= record_bytes(sample);
    if (record.segment_class == SegmentClass::kWindow) {
        charges_[record.party.value()].window -= record_bytes(sample);
    }
}

// A doomed resident lives as long as a window sample and is counted with them.
std::uint64_t& SampleTable::stored_count(const SampleRecord& record) {
    const bool resident = record.segment_class == SegmentClass::kResident && !record.doomed;
    return resident ? account_.resident_samples : account_.window_samples;
}

void SampleTable::tell_stored(SampleIndex sample) {
    if (listener_ != nullptr) {
        listener_->on_stored(sample, records_[sample].segment_class == SegmentClass::kResident);
    }
}

void SampleTable::tell_gone(SampleIndex sample) {
    if (listener_ != nullptr) {
        listener_->on_gone(sample);
    }
}

void SampleTable::leave_flight(SampleIndex sample) {
    STOKER_CHECK(records_[sample].state == SampleState::kFetching, "the sample is not in flight");
    account_.in_flight -= payload_bytes(sample);
    --account_.in_flight_samples;
    --charges_[records_[sample].party.value()].in_flight_samples;
}

}  // namespace stoker::sidecar
