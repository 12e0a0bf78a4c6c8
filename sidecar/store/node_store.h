#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/manifest.h"
#include "common/domain/residency_word.h"
#include "sidecar/device/device.h"
#include "sidecar/store/residency_file.h"
#include "sidecar/store/segment_files.h"
#include "sidecar/store/segment_numbers.h"
#include "sidecar/store/segment_table.h"
#include "sidecar/store/segment_writer.h"

namespace stoker::sidecar {

struct RecoveredDirectory;

struct StoreOptions {
    std::string directory;          // data/ of the node directory, exists, ours alone (lock held)
    std::string control_directory;  // control/ of it, for the state file
    Bytes segment_bytes = mib(64);  // a sample larger than this gets a segment of its own
    Bytes window_segment_bytes = mib(8);  // smaller: a window comes back only by whole segments
    double reserved_free = 0.15;          // share of the file system that stays free
    std::string boot_id;  // of the running kernel: letters, digits, '-'; another one than last time
                          // means a reboot

    // New segments get this number or a higher one. Seconds on the wall clock since 2020 keep
    // numbers from coming back even where everything in the directory was deleted by hand under
    // running readers (docs/design/node-directory.md). 0 is good for tests.
    std::uint32_t sequence_floor = 0;

    // Other revisions that running jobs still use: their files are left alone. The files of all
    // others are unlinked.
    std::vector<domain::RevisionId> keep_revisions;
};

// What opening a directory found; logged once and counted.
struct RecoveryReport {
    std::uint64_t segments_kept = 0;
    std::uint64_t segments_dropped = 0;  // another version, another revision, damaged header
    std::uint64_t samples_kept = 0;
    std::uint64_t samples_dropped = 0;  // torn tail, or wrong checksum where it had to be verified
    bool verified_checksums = false;    // every segment not known to be synced was read: after a
                                        // reboot, or when table or state file were lost
    bool after_clean_stop = false;      // the last leader ended with close()
};

struct StoreUsage {
    Bytes resident_bytes{};  // live records of class resident, headers and padding included
    Bytes window_bytes{};
    std::uint64_t resident_samples = 0;
    std::uint64_t window_samples = 0;
    Bytes file_bytes{};     // what the segment files take, dead records and footers included
    Bytes written_bytes{};  // to segment files since open, for bytes written per byte served
};

// The segments and the residency table of one revision in one node directory, on the side of the
// one writer. Owns the state files and everything in data/ but the manifests. Thread-safe: append()
// may be called from several I/O threads, everything else too; publishing order is payload, then
// word (release). Starts no thread; find() takes no lock. Destroying it without close() is what a
// crash of the process is: nothing that was published is lost.
//
// Errors: kInvalidArgument for what the caller got wrong; kResourceExhausted when the disk is full
// or reservedFree would be touched; kUnavailable for read-only and I/O errors; kCancelled after
// close(). In every case nothing was published and what is stored stays readable.
//
// One lock guards the accounts and the order of publishing; payloads are written and files sealed,
// synced and unlinked outside it. The residency table is written only under the lock and read
// without it.
class NodeStore {
public:
    // Scans the directory, drops what cannot be trusted, rebuilds the residency table (in place:
    // readers may have it mapped). `device` and what `manifest` views must outlive the store.
    static Result<std::unique_ptr<NodeStore>> open(
        Device& device, const domain::ManifestView& manifest, StoreOptions options);

    NodeStore(const NodeStore&) = delete;
    NodeStore& operator=(const NodeStore&) = delete;
    ~NodeStore() = default;

    [[nodiscard]] RecoveryReport recovery() const { return report_; }

    // Stores the payload of `sample` (its length must be the manifest's) and publishes it. A sample
    // that is already there is left alone and its place is returned.
    Result<domain::Residency> append(
        domain::SampleId sample,
        std::span<const std::byte> payload,
        domain::SegmentClass segment_class);

    [[nodiscard]] std::optional<domain::Residency> find(domain::SampleId sample) const;

    // Makes a sample absent. Its segment is unlinked as soon as no sample in it is live; readers
    // that hold a map keep it.
    void drop(domain::SampleId sample);

    // Reads a resident sample into the page cache just before use, and lets it go behind the
    // reader. Hints: never fail.
    void will_need(domain::SampleId sample) { advise(sample, true); }

    void wont_need(domain::SampleId sample) { advise(sample, false); }

    // Re-reads a stored sample and drops it when its checksum is wrong. false: it was wrong (or
    // absent).
    bool verify(domain::SampleId sample);

    [[nodiscard]] StoreUsage usage() const;

    // Work for idle moments. Copies live samples of the emptiest sealed segments forward and
    // unlinks them until no segment is less than half live, then syncs sealed segments, so that a
    // reboot need not re-read them; bounded to about `budget` bytes a call. True when there is
    // nothing left to do.
    Result<bool> compact(Bytes budget);

    // Seals open segments, syncs, writes the state file with clean = true. Called on an orderly
    // stop.
    Status close();

private:
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

    using WriterPtr = std::shared_ptr<SegmentWriter>;
    using OpenSegments = std::map<domain::SegmentClass, WriterPtr>;

    struct Slot {
        WriterPtr writer;
        std::uint64_t record_offset = 0;
    };

    struct Shared {
        SegmentTable segments;
        SegmentNumbers numbers;
        OpenSegments open{};                       // takes the next records of its class
        std::vector<WriterPtr> retired{};          // takes no more, waits for its footer
        std::vector<domain::SegmentSeq> doomed{};  // without a live sample, to be unlinked
        std::unordered_map<domain::SampleId, std::uint64_t>
            in_flight{};  // sample → Incoming::replaces
        std::uint64_t written_bytes = 0;
        bool closed = false;
    };

    using Locked = Guarded<Shared>::Locked;

    NodeStore(
        Device& device,
        const domain::ManifestView& manifest,
        StoreOptions options,
        RecoveredDirectory recovered,
        SegmentNumbers numbers);

    Result<domain::Residency> put(const Incoming& incoming);
    Result<Slot> reserve(Shared& shared, const Incoming& incoming);
    Result<WriterPtr> open_segment(
        Shared& shared, domain::SegmentClass segment_class, std::uint64_t capacity_bytes);
    [[nodiscard]] Status check_space(std::uint64_t wanted_bytes) const;
    Status write_record(Locked& shared, const Incoming& incoming, const Slot& slot);
    void publish(
        Shared& shared, const domain::SegmentHeader& header, const domain::FooterEntry& entry);
    static void update(Shared& shared, const SegmentWriter& writer, std::uint64_t bytes_before);
    static void forget_live(
        Shared& shared, const domain::Residency& where, std::uint64_t payload_bytes);
    static void retire(Shared& shared, OpenSegments::iterator open);
    static void reap(Shared& shared, domain::SegmentSeq seq);
    void tidy_up(Locked& shared);
    void seal(Locked& shared, SegmentWriter& writer);
    void drop_if(domain::SampleId sample, std::uint64_t word, bool damaged);
    void drop_damaged(domain::SampleId sample, std::uint64_t word, const Error& error);
    void advise(domain::SampleId sample, bool needed);

    Status copy_forward(domain::SegmentSeq victim, std::uint64_t& budget_bytes);
    Status copy_record(
        DeviceFile& file, const domain::FooterEntry& record, const domain::Residency& from);
    void drop_all_in(domain::SegmentSeq seq);
    Result<bool> sync_segments(std::uint64_t& budget_bytes);
    Status save_state(bool clean);
    void try_to_save_state();
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
