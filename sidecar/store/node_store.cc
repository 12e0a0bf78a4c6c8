#include "sidecar/store/node_store.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/store/recovery.h"
#include "sidecar/store/store_state.h"

namespace stoker::sidecar {

using domain::Residency;
using domain::SampleId;
using domain::SegmentClass;
using domain::SegmentSeq;

namespace {

Status check_options(const StoreOptions& options) {
    const auto is_size = [](Bytes bytes) {
        return bytes >= Bytes{4096} && bytes <= Bytes{domain::kSegmentBytesMax};
    };
    if (!is_plain_text(options.boot_id)) {
        return fail(ErrorCode::kInvalidArgument, "boot id is not made of letters, digits and '-'");
    }
    if (!is_size(options.segment_bytes) || !is_size(options.window_segment_bytes)) {
        return fail(ErrorCode::kInvalidArgument, "segments must have between 4Ki and 64Gi bytes");
    }
    if (!(options.reserved_free >= 0 && options.reserved_free < 1)) {
        return fail(ErrorCode::kInvalidArgument, "reservedFree must be at least 0 and below 1");
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<NodeStore>> NodeStore::open(
    Device& device, const domain::ManifestView& manifest, StoreOptions options) {
    STOKER_TRY_VOID(check_options(options));
    STOKER_TRY(auto recovered, recover_directory(device, manifest, options));
    STOKER_TRY(
        auto numbers, SegmentNumbers::open(device, options.directory, recovered.lowest_number));
    std::unique_ptr<NodeStore> store{new NodeStore(
        device, manifest, std::move(options), std::move(recovered), std::move(numbers))};
    // A full disk does not prevent serving; the old state stays true for the segments that it
    // names.
    store->try_to_save_state();
    return store;
}

NodeStore::NodeStore(
    Device& device,
    const domain::ManifestView& manifest,
    StoreOptions options,
    RecoveredDirectory recovered,
    SegmentNumbers numbers)
    : device_(device),
      manifest_(manifest),
      options_(std::move(options)),
      report_(recovered.report),
      table_(std::move(recovered.table)),
      files_(device, options_.directory),
      shared_(Shared{std::move(recovered.segments), std::move(numbers)}) {}

Status NodeStore::check_sample(
    SampleId sample, std::uint64_t payload_bytes, SegmentClass segment_class) const {
    if (sample.value() >= manifest_.sample_count() ||
        payload_bytes != manifest_.size_bytes(sample)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "sample {} of {} bytes is not in the manifest", sample.value(), payload_bytes));
    }
    if (segment_class == SegmentClass::kAbsent) {
        return fail(ErrorCode::kInvalidArgument, "cannot store a sample in segment class absent");
    }
    if (SegmentWriter::capacity_for(payload_bytes) > domain::kSegmentBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("sample {} is larger than a segment can be", sample.value()));
    }
    return {};
}

Result<Residency> NodeStore::append(
    SampleId sample,
    std::span<const std::byte> payload,
    SegmentClass segment_class,
    std::optional<std::uint32_t> crc32c) {
    STOKER_TRY_VOID(check_sample(sample, payload.size(), segment_class));
    const std::uint32_t found = stoker::crc32c(payload);
    if (found != crc32c.value_or(found)) {
        return fail(ErrorCode::kCorruption, "the payload does not match its checksum");
    }
    return put({sample, payload, segment_class, 0, found});
}

Result<Residency> NodeStore::put(const Incoming& incoming) {
    auto shared = shared_.lock();
    settled_.wait(shared.native(), [&] { return !shared->in_flight.contains(incoming.sample); });
    if (const std::uint64_t word = table_->load(incoming.sample); word != incoming.replaces) {
        // Another call has stored the sample, or (for a copy by compact()) dropped or moved it.
        // Returns the place that the table has now; Residency{} means absent.
        return domain::unpack_residency(word).value_or(Residency{});
    }
    if (shared->closed) {
        return fail(ErrorCode::kCancelled, "the store is closed");
    }
    auto reserved = reserve(*shared, incoming);
    if (!reserved.has_value()) {
        tidy_up(shared);
        return fail(std::move(reserved).error());
    }
    const Slot slot = *std::move(reserved);
    shared->in_flight.emplace(incoming.sample, incoming.replaces);
    const Status stored = write_record(shared, incoming, slot);
    shared->in_flight.erase(incoming.sample);
    settled_.notify_all();
    tidy_up(shared);
    if (!stored.has_value()) {
        return fail(stored.error());
    }
    const domain::SegmentHeader& header = slot.writer->header();
    return Residency{header.segment_class, header.seq, slot.record_offset};
}

Result<NodeStore::Slot> NodeStore::reserve(Shared& shared, const Incoming& incoming) {
    const std::uint64_t payload_bytes = incoming.payload.size();
    const SegmentClass segment_class = incoming.segment_class;
    const std::uint64_t capacity = segment_class == SegmentClass::kWindow
                                       ? options_.window_segment_bytes.count()
                                       : options_.segment_bytes.count();
    // compact() copies live samples out of a segment in order to unlink it. That frees more space
    // than it takes, so it may use the reserved space.
    const bool checks_space = incoming.replaces == 0;
    if (SegmentWriter::capacity_for(payload_bytes) > capacity) {
        return reserve_alone(shared, incoming.sample, segment_class, checks_space);
    }
    auto open = shared.open.find(segment_class);
    if (open != shared.open.end() && !open->second->fits(payload_bytes)) {
        retire(shared, open);
        open = shared.open.end();
    }
    if (open == shared.open.end()) {
        if (checks_space) {
            STOKER_TRY_VOID(check_space(capacity));
        }
        STOKER_TRY(WriterPtr writer, open_segment(shared, segment_class, capacity));
        open = shared.open.emplace(segment_class, std::move(writer)).first;
    }
    return Slot{open->second, open->second->reserve(incoming.sample, payload_bytes)};
}

Result<NodeStore::WriterPtr> NodeStore::open_segment(
    Shared& shared, SegmentClass segment_class, std::uint64_t capacity) {
    while (true) {
        STOKER_TRY(const SegmentSeq seq, shared.numbers.next());
        auto writer = SegmentWriter::create(
            device_, options_.directory, {seq, manifest_.revision(), segment_class, capacity});
        if (writer.has_value()) {
            SegmentInfo info;
            info.segment_class = segment_class;
            info.file_bytes = (*writer)->file_bytes();
            info.growing = true;
            shared.segments.add(seq, info);
            shared.written_bytes += info.file_bytes;
            return WriterPtr{*std::move(writer)};
        }
        if (writer.error().code != ErrorCode::kAlreadyExists) {
            return fail(writer.error().prefixed("opening a segment"));
        }
    }
}

Status NodeStore::check_space(std::uint64_t wanted_bytes) const {
    STOKER_TRY(const DeviceSpace space, device_.space(options_.directory));
    const Bytes reserved{static_cast<std::uint64_t>(
        static_cast<double>(space.total.count()) * options_.reserved_free)};
    if (space.available < reserved + Bytes{wanted_bytes}) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format(
                "{} free of {}; {} of it are reserved (reservedFree)",
                to_string(space.available),
                to_string(space.total),
                to_string(reserved)));
    }
    return {};
}

// Writes without holding the lock, then waits until the record is committed or has failed, which
// may take as long as the writes before it.
Status NodeStore::write_record(Locked& shared, const Incoming& incoming, const Slot& slot) {
    SegmentWriter& writer = *slot.writer;
    shared.native().unlock();
    Status written =
        writer.write(slot.record_offset, incoming.sample, incoming.payload, incoming.crc32c);
    shared.native().lock();
    commit(*shared, slot, written.has_value());
    settled_.wait(shared.native(), [&] {
        return writer.is_committed(slot.record_offset) || writer.is_failed(slot.record_offset);
    });
    if (written.has_value() && !writer.is_committed(slot.record_offset)) {
        return fail(ErrorCode::kUnavailable, "an earlier record of the segment was not written");
    }
    return written;
}

// Publishes the slot's record, and records that waited for it, if the write succeeded.
void NodeStore::commit(Shared& shared, const Slot& slot, bool written) {
    SegmentWriter& writer = *slot.writer;
    const std::uint64_t bytes_before = writer.file_bytes();
    for (const auto& entry : writer.complete(slot.record_offset, written)) {
        publish(shared, writer.header(), entry);
    }
    update(shared, writer, bytes_before);
    settled_.notify_all();
}

void NodeStore::publish(
    Shared& shared, const domain::SegmentHeader& header, const domain::FooterEntry& entry) {
    const auto expected = shared.in_flight.find(entry.sample);
    STOKER_CHECK(expected != shared.in_flight.end(), "commit() of a record that is not in flight");
    if (table_->load(entry.sample) != expected->second) {
        return;  // dropped during the copy, so the copy is dead at once
    }
    const Residency where{header.segment_class, header.seq, entry.record_offset};
    shared.segments.add_live(where.segment, domain::record_bytes(entry.payload_bytes));
    table_->store(entry.sample, domain::pack_residency(where));
    if (const auto old = domain::unpack_residency(expected->second)) {
        forget_live(shared, *old, entry.payload_bytes);
    }
}

// Records that the segment's file grew from `bytes_before`, or that a write to it failed.
void NodeStore::update(Shared& shared, const SegmentWriter& writer, std::uint64_t bytes_before) {
    const domain::SegmentHeader& header = writer.header();
    shared.written_bytes += writer.file_bytes() - bytes_before;
    shared.segments.set_file_bytes(header.seq, writer.file_bytes());
    const auto open = shared.open.find(header.segment_class);
    if (writer.is_broken() && open != shared.open.end() && open->second.get() == &writer) {
        retire(shared, open);
    }
    reap(shared, header.seq);
}

void NodeStore::forget_live(Shared& shared, const Residency& where, std::uint64_t payload_bytes) {
    shared.segments.remove_live(where.segment, domain::record_bytes(payload_bytes));
    reap(shared, where.segment);
}

void NodeStore::retire(Shared& shared, OpenSegments::iterator open) {
    shared.retired.push_back(std::move(open->second));
    shared.open.erase(open);
}

// Marks a segment without live samples for unlinking, unless records are still being written to it.
void NodeStore::reap(Shared& shared, SegmentSeq seq) {
    const SegmentInfo* info = shared.segments.find(seq);
    if (info == nullptr || info->live_samples > 0) {
        return;
    }
    const auto is_it = [&](const WriterPtr& writer) { return writer->header().seq == seq; };
    const auto open =
        std::ranges::find_if(shared.open, [&](const auto& entry) { return is_it(entry.second); });
    const auto retired = std::ranges::find_if(shared.retired, is_it);
    if (open != shared.open.end()) {
        if (!open->second->is_idle()) {
            return;
        }
        shared.open.erase(open);
    } else if (retired != shared.retired.end()) {
        if (!(*retired)->is_idle()) {
            return;
        }
        shared.retired.erase(retired);
    }
    shared.segments.erase(seq);
    shared.doomed.push_back(seq);
}

// Seals and unlinks segments that are ready, without the lock. Does not take the lock again.
void NodeStore::tidy_up(Locked& shared) {
    const auto is_ready = [](const WriterPtr& writer) { return writer->is_idle(); };
    auto& retired = shared->retired;
    for (auto at = std::ranges::find_if(retired, is_ready); at != retired.end();
         at = std::ranges::find_if(retired, is_ready)) {
        const WriterPtr writer = *at;
        retired.erase(at);
        seal(shared, *writer);
    }
    const std::vector<SegmentSeq> doomed = std::exchange(shared->doomed, {});
    shared.native().unlock();
    for (const SegmentSeq seq : doomed) {
        files_.forget(seq);
        const auto path = join_path(options_.directory, domain::segment_file(seq));
        const Status status = device_.unlink(path);
        if (!status.has_value() && status.error().code != ErrorCode::kNotFound) {
            log::warning(
                "cannot unlink segment", {{"path", path}, {"error", status.error().message}});
        }
    }
}

void NodeStore::seal(Locked& shared, SegmentWriter& writer) {
    shared.native().unlock();
    const std::uint64_t bytes_before = writer.file_bytes();
    const Status sealed = writer.seal();
    if (!sealed.has_value()) {
        log::warning(
            "cannot seal segment",
            {{"segment", writer.header().seq.value()}, {"error", sealed.error().message}});
    }
    shared.native().lock();
    shared->segments.set_full_grown(writer.header().seq);
    update(*shared, writer, bytes_before);
}

std::optional<Residency> NodeStore::find(SampleId sample) const {
    if (sample.value() >= manifest_.sample_count()) {
        return std::nullopt;
    }
    return domain::unpack_residency(table_->load(sample));
}

void NodeStore::drop(SampleId sample) {
    if (sample.value() < manifest_.sample_count()) {
        drop_if(sample, table_->load(sample), false);
    }
}

// Makes the sample absent, if its entry in the residency table is still `word`.
void NodeStore::drop_if(SampleId sample, std::uint64_t word, bool damaged) {
    auto shared = shared_.lock();
    const auto where = domain::unpack_residency(word);
    if (!where.has_value() || table_->load(sample) != word) {
        return;
    }
    table_->store(sample, 0);
    if (damaged) {
        shared->segments.set_damaged(where->segment);
    }
    forget_live(*shared, *where, manifest_.size_bytes(sample));
    tidy_up(shared);
}

void NodeStore::advise(SampleId sample, bool needed) {
    const auto where = find(sample);
    if (!where.has_value()) {
        return;
    }
    const auto file = files_.open(where->segment);
    if (!file.has_value()) {
        return;
    }
    const std::uint64_t bytes = domain::record_bytes(manifest_.size_bytes(sample));
    if (needed) {
        (*file)->will_need(where->record_offset, bytes);
    } else {
        (*file)->wont_need(where->record_offset, bytes);
    }
}

StoreUsage NodeStore::usage() const {
    const auto shared = shared_.lock();
    const SegmentTable& table = shared->segments;
    const ClassUsage resident = table.usage(SegmentClass::kResident);
    const ClassUsage window = table.usage(SegmentClass::kWindow);
    return {
        .resident_bytes = Bytes{resident.live_bytes},
        .window_bytes = Bytes{window.live_bytes},
        .resident_samples = resident.live_samples,
        .window_samples = window.live_samples,
        .file_bytes = Bytes{table.file_bytes()},
        .unfinished_bytes = Bytes{shared->unfinished_bytes},
        .written_bytes = Bytes{shared->written_bytes}};
}

}  // namespace stoker::sidecar
