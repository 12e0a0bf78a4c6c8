// The part of NodeStore that stores a sample in parts.
#include <utility>

#include "common/base/check.h"
#include "sidecar/store/node_store.h"

namespace stoker::sidecar {

using domain::Residency;
using domain::SampleId;
using domain::SegmentClass;

SampleWriter::~SampleWriter() {
    if (!is_over_) {
        store_.end(*this, false);
    }
}

Status SampleWriter::write(std::uint64_t offset, std::span<const std::byte> part) {
    STOKER_CHECK(
        offset <= payload_bytes_ && part.size() <= payload_bytes_ - offset,
        "the part must lie within the payload");
    return slot_.writer->write_part(slot_.record_offset, offset, part);
}

Result<Residency> SampleWriter::finish(std::uint32_t crc32c) {
    STOKER_CHECK(!is_over_, "finish() was called before");
    const Status written =
        slot_.writer->write_head(slot_.record_offset, sample_, payload_bytes_, crc32c);
    store_.end(*this, written.has_value());
    if (!written) {
        return fail(written.error());
    }
    const domain::SegmentHeader& header = slot_.writer->header();
    return Residency{header.segment_class, header.seq, slot_.record_offset};
}

Result<std::unique_ptr<SampleWriter>> NodeStore::begin(
    SampleId sample, SegmentClass segment_class) {
    const bool is_known = sample.value() < manifest_.sample_count();
    const std::uint64_t payload_bytes = is_known ? manifest_.size_bytes(sample) : 0;
    STOKER_TRY_VOID(check_sample(sample, payload_bytes, segment_class));
    std::unique_ptr<SampleWriter> writer;
    {
        auto shared = shared_.lock();
        settled_.wait(shared.native(), [&] { return !shared->in_flight.contains(sample); });
        if (table_->load(sample) != 0) {
            return fail(ErrorCode::kAlreadyExists, "the sample is stored");
        }
        if (shared->closed) {
            return fail(ErrorCode::kCancelled, "the store is closed");
        }
        STOKER_TRY(Slot slot, reserve_alone(*shared, sample, segment_class, true));
        shared->in_flight.emplace(sample, 0);
        shared->unfinished_bytes += slot.writer->header().capacity_bytes;
        writer.reset(new SampleWriter(*this, sample, payload_bytes, std::move(slot)));
    }
    STOKER_TRY_VOID(writer->slot_.writer->allocate());
    return writer;
}

// Reserves a segment just large enough for one record, and the place of that record.
Result<NodeStore::Slot> NodeStore::reserve_alone(
    Shared& shared, SampleId sample, SegmentClass segment_class, bool checks_space) {
    const std::uint64_t payload_bytes = manifest_.size_bytes(sample);
    const std::uint64_t capacity = SegmentWriter::capacity_for(payload_bytes);
    if (checks_space) {
        STOKER_TRY_VOID(check_space(capacity));
    }
    STOKER_TRY(const WriterPtr writer, open_segment(shared, segment_class, capacity));
    shared.retired.push_back(writer);
    return Slot{writer, writer->reserve(sample, payload_bytes)};
}

void NodeStore::end(SampleWriter& sample, bool written) {
    sample.is_over_ = true;
    auto shared = shared_.lock();
    commit(*shared, sample.slot_, written);
    shared->unfinished_bytes -= sample.slot_.writer->header().capacity_bytes;
    shared->in_flight.erase(sample.sample_);
    settled_.notify_all();
    tidy_up(shared);
}

}  // namespace stoker::sidecar
