#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/guarded.h"
#include "common/domain/manifest.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/recovery.h"
#include "sidecar/store/residency_file.h"
#include "sidecar/store/segment_files.h"
#include "sidecar/store/segment_numbers.h"
#include "sidecar/store/segment_table.h"
#include "sidecar/store/segment_writer.h"

namespace stoker::sidecar {

// The NodeStore: contract in node_store.h.
//
// One lock guards the accounts and the order of publishing; payloads are written and files sealed,
// synced and unlinked outside it. The residency table is written only under the lock and read
// without it.
class SegmentStore final : public NodeStore {
public:
    SegmentStore(
        Device& device,
        const domain::ManifestView& manifest,
        StoreOptions options,
        RecoveredDirectory recovered,
        SegmentNumbers numbers);

    // Says in the state file that the directory is in use. Before the first append().
    void begin();

    [[nodiscard]] RecoveryReport recovery() const override { return report_; }

    Result<domain::Residency> append(
        domain::SampleId sample,
        std::span<const std::byte> payload,
        domain::SegmentClass segment_class) override;

    [[nodiscard]] std::optional<domain::Residency> find(domain::SampleId sample) const override;
    void drop(domain::SampleId sample) override;
    void will_need(domain::SampleId sample) override;
    void wont_need(domain::SampleId sample) override;
    bool verify(domain::SampleId sample) override;
    [[nodiscard]] StoreUsage usage() const override;
    Result<bool> compact(Bytes budget) override;
    Status close() override;

private:
    using WriterPtr = std::shared_ptr<SegmentWriter>;

    // A payload on its way in. `replaces` is the sample's word as the caller knows it: 0 for a new
    // sample, the old place for a copy forward; publishing happens only while the table still says
    // so.
    struct Incoming {
        domain::SampleId sample;
        std::span<const std::byte> payload;
        domain::SegmentClass segment_class;
        std::uint64_t replaces;
        std::uint32_t crc32c;
    };

    struct Slot {
        WriterPtr writer;
        std::uint64_t record_offset = 0;
    };

    struct Shared {
        SegmentTable segments;
        SegmentNumbers numbers;
        std::map<domain::SegmentClass, WriterPtr> open;  // takes the next records of its class
        std::vector<WriterPtr> retired;                  // takes no more, waits for its footer
        std::vector<domain::SegmentSeq> doomed;          // without a live sample, to be unlinked
        std::unordered_map<domain::SampleId, std::uint64_t>
            in_flight;  // sample → Incoming::replaces
        std::uint64_t written_bytes = 0;
        bool closed = false;
    };

    using Locked = Guarded<Shared>::Locked;

    Result<domain::Residency> put(const Incoming& incoming);
    [[nodiscard]] std::optional<domain::Residency> settled_already(const Incoming& incoming) const;
    Status write_record(Locked& shared, const Incoming& incoming, const Slot& slot);
    Result<Slot> reserve(Shared& shared, const Incoming& incoming);
    Result<WriterPtr> open_segment(
        Shared& shared, const Incoming& incoming, std::uint64_t capacity_bytes);
    [[nodiscard]] Status check_space(std::uint64_t wanted_bytes) const;
    void complete(Shared& shared, SegmentWriter& writer, std::uint64_t record_offset, bool written);
    void publish(Shared& shared, SegmentWriter& writer, const domain::FooterEntry& entry);
    void forget_live(Shared& shared, const domain::Residency& where, std::uint64_t payload_bytes);
    void retire(Shared& shared, domain::SegmentClass segment_class);
    static void reap(Shared& shared, domain::SegmentSeq seq);
    void tidy_up(Locked& shared);
    void seal(Locked& shared, SegmentWriter& writer);
    void drop_if(domain::SampleId sample, std::uint64_t word, bool damaged);
    void advise(domain::SampleId sample, bool needed);

    Status copy_forward(domain::SegmentSeq victim, std::uint64_t& budget_bytes);
    Status copy_record(
        DeviceFile& file, const domain::FooterEntry& record, const domain::Residency& from);
    void drop_all_in(domain::SegmentSeq seq);
    Result<bool> sync_segments(std::uint64_t& budget_bytes);
    Status save_state(const Shared& shared, bool clean, Durability durability);
    void remember_damage();
    [[nodiscard]] std::string segments_folder() const;

    // Constant after construction.
    Device& device_;
    const domain::ManifestView manifest_;
    const StoreOptions options_;
    const RecoveryReport report_;

    // With their own synchronization.
    std::unique_ptr<ResidencyFile> table_;
    SegmentFiles files_;
    mutable Guarded<Shared> shared_;   // its lock also keeps writers of the state file apart
    std::condition_variable settled_;  // with the lock of shared_: a record was published or failed
    std::mutex upkeep_;                // one compact() or close() at a time; taken before shared_
};

}  // namespace stoker::sidecar
