// Verification, compaction, sync and close of NodeStore.
#include <algorithm>

#include "common/base/check.h"
#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/segment_scan.h"
#include "sidecar/store/store_state.h"

namespace stoker::sidecar {

using domain::Residency;
using domain::SampleId;
using domain::SegmentSeq;

namespace {

void spend(std::uint64_t& budget_bytes, std::uint64_t bytes) {
    budget_bytes -= std::min(budget_bytes, bytes);
}

}  // namespace

std::string NodeStore::segments_folder() const {
    return join_path(options_.directory, domain::kSegmentFolder);
}

Result<RecordBytes> NodeStore::read(SampleId sample) {
    while (true) {
        const auto where = find(sample);
        if (!where.has_value()) {
            return fail(ErrorCode::kNotFound, "the sample is not stored");
        }
        const domain::FooterEntry place{sample, where->record_offset, manifest_.size_bytes(sample)};
        const auto file = files_.open(where->segment);
        auto record = file.has_value() ? read_record(**file, where->segment, place)
                                       : Result<RecordBytes>{fail(file.error())};
        if (record.has_value() || find(sample) == where) {
            return record;
        }
        // The sample was moved meanwhile.
    }
}

bool NodeStore::verify(SampleId sample) {
    if (sample.value() >= manifest_.sample_count()) {
        return false;
    }
    while (true) {
        const std::uint64_t word = table_->load(sample);
        const auto where = domain::unpack_residency(word);
        if (!where.has_value()) {
            return false;
        }
        const auto file = files_.open(where->segment);
        const Status good = file.has_value()
                                ? check_record(
                                      **file,
                                      where->segment,
                                      {sample, where->record_offset, manifest_.size_bytes(sample)})
                                : Status{fail(file.error())};
        if (good.has_value()) {
            return true;
        }
        if (table_->load(sample) != word) {
            continue;  // the sample was moved meanwhile
        }
        if (good.error().code == ErrorCode::kResourceExhausted) {
            return true;  // unreadable now, which does not prove that it is damaged
        }
        drop_damaged(sample, word, good.error());
        return false;
    }
}

// Makes the drop durable, because a damaged segment must not be trusted after a reboot. This is
// rare, so it may sync at once.
void NodeStore::drop_damaged(SampleId sample, std::uint64_t word, const Error& error) {
    log::warning(
        "dropping a damaged sample", {{"sample", sample.value()}, {"error", error.message}});
    drop_if(sample, word, true);
    try_to_save_state();
}

Result<bool> NodeStore::compact(Bytes budget) {
    const std::lock_guard upkeep{upkeep_};
    std::uint64_t budget_bytes = budget.count();
    while (budget_bytes > 0) {
        const auto victim = shared_.lock()->segments.emptiest();
        if (!victim.has_value()) {
            STOKER_TRY(const bool synced, sync_segments(budget_bytes));
            return synced;
        }
        STOKER_TRY_VOID(copy_forward(*victim, budget_bytes));
    }
    return false;
}

// Copies the live records of `victim`; the last call for it unlinks the file.
Status NodeStore::copy_forward(SegmentSeq victim, std::uint64_t& budget_bytes) {
    const auto file = files_.open(victim);
    if (!file.has_value()) {
        if (file.error().code != ErrorCode::kNotFound) {
            return fail(file.error());
        }
        drop_all_in(victim);  // the segment was unlinked meanwhile
        return {};
    }
    STOKER_TRY(const auto header, read_segment_header(**file));
    STOKER_TRY(const auto contents, scan_segment(**file, victim, manifest_, Trust::kFooter));
    for (const domain::FooterEntry& record : contents.records) {
        const Residency from{header.segment_class, victim, record.record_offset};
        if (table_->load(record.sample) != domain::pack_residency(from)) {
            continue;
        }
        if (budget_bytes == 0) {
            return {};
        }
        STOKER_TRY_VOID(copy_record(**file, record, from));
        spend(budget_bytes, domain::record_bytes(record.payload_bytes));
    }
    drop_all_in(victim);
    return {};
}

Status NodeStore::copy_record(
    DeviceFile& file, const domain::FooterEntry& record, const Residency& from) {
    const std::uint64_t word = domain::pack_residency(from);
    const auto bytes = read_record(file, from.segment, record);
    if (bytes.has_value()) {
        const auto stored =
            put({record.sample, bytes->payload(), from.segment_class, word, bytes->payload_crc32c});
        return stored.has_value() ? Status{} : Status{fail(stored.error())};
    }
    if (bytes.error().code != ErrorCode::kCorruption) {
        return fail(bytes.error());
    }
    drop_damaged(record.sample, word, bytes.error());
    return {};
}

// Drops all samples that are still live in the segment. After the copy only samples are left that
// the segment's damaged index does not list.
void NodeStore::drop_all_in(SegmentSeq seq) {
    if (shared_.lock()->segments.find(seq) == nullptr) {
        return;
    }
    for (std::uint64_t id = 0; id < manifest_.sample_count(); ++id) {
        const std::uint64_t word = table_->load(SampleId{id});
        const auto where = domain::unpack_residency(word);
        if (where.has_value() && where->segment == seq) {
            drop_if(SampleId{id}, word, true);
        }
    }
}

// True: no sealed segment is left to sync. Updates the state file only after the sync.
Result<bool> NodeStore::sync_segments(std::uint64_t& budget_bytes) {
    bool any = false;
    auto next = shared_.lock()->segments.oldest_unsynced();
    while (next.has_value() && budget_bytes > 0) {
        const auto file = files_.open(*next);
        if (file.has_value()) {
            if (Status synced = (*file)->sync(); !synced.has_value()) {
                // The kernel may have dropped pages that it could not write, and report success the
                // next time.
                shared_.lock()->segments.set_damaged(*next);
                return fail(std::move(synced).error());
            }
        } else if (file.error().code != ErrorCode::kNotFound) {
            return fail(file.error());
        }
        auto shared = shared_.lock();
        if (const SegmentInfo* info = shared->segments.find(*next); info != nullptr) {
            spend(budget_bytes, info->file_bytes);
        }
        shared->segments.set_synced(*next);
        any = true;
        next = shared->segments.oldest_unsynced();
    }
    if (any) {
        // Syncs the names, too: a synced file whose name is not durable is lost.
        STOKER_TRY_VOID(device_.sync_folder(segments_folder()));
        STOKER_TRY_VOID(save_state(false));
    }
    return !next.has_value();
}

Status NodeStore::save_state(bool clean) {
    const auto shared = shared_.lock();
    return sidecar::save_state(
        device_,
        join_path(options_.control_directory, domain::state_file(manifest_.revision())),
        {options_.boot_id, clean, shared->segments.trusted()});
}

void NodeStore::try_to_save_state() {
    if (const Status saved = save_state(false); !saved.has_value()) {
        log::warning("cannot save the store's state", {{"error", saved.error().message}});
    }
}

Status NodeStore::close() {
    const std::lock_guard upkeep{upkeep_};
    {
        auto shared = shared_.lock();
        if (shared->closed) {
            return {};
        }
        shared->closed = true;
        settled_.wait(shared.native(), [&] { return shared->in_flight.empty(); });
        while (!shared->open.empty()) {
            retire(*shared, shared->open.begin());
        }
        tidy_up(shared);
    }
    std::uint64_t budget_bytes = Bytes::unlimited().count();
    STOKER_TRY(const bool synced, sync_segments(budget_bytes));
    STOKER_CHECK(synced, "a segment still grows after close()");
    STOKER_TRY_VOID(device_.sync_folder(segments_folder()));
    return save_state(true);
}

}  // namespace stoker::sidecar
