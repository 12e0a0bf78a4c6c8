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
#include "sidecar/store/segment_scan.h"
#include "sidecar/store/segment_table.h"
#include "sidecar/store/segment_writer.h"

namespace stoker::sidecar {

class NodeStore;
struct RecoveredDirectory;

struct StoreOptions {
    std::string directory;                // data/ of the node directory; exists, lock held by us
    std::string control_directory;        // control/ of the node directory; holds the state file
    Bytes segment_bytes = mib(64);        // a larger sample gets a segment of its own
    Bytes window_segment_bytes = mib(8);  // smaller: window space is freed only by whole segments
    double reserved_free = 0.15;          // share of the file system that must stay free
    std::string boot_id;  // of the running kernel: letters, digits, '-'; a changed id means
                          // the machine was rebooted

    // New segments get this number or a higher one. In production: wall-clock seconds since 2020,
    // so that numbers do not repeat even if the directory was emptied by hand while readers ran
    // (docs/design/node-directory.md). Tests use 0.
    std::uint32_t sequence_floor = 0;

    // Other revisions that running jobs use: their files stay. Files of all other revisions are
    // unlinked.
    std::vector<domain::RevisionId> keep_revisions;
};

// Findings of opening a directory; logged once and counted.
struct RecoveryReport {
    std::uint64_t segments_kept = 0;
    std::uint64_t segments_dropped = 0;  // of another version or revision, or with a damaged header
    std::uint64_t samples_kept = 0;
    std::uint64_t samples_dropped = 0;  // at a torn tail, or with a wrong checksum where checked
    bool verified_checksums = false;    // after a reboot, or a loss of the table or the state file,
                                        // every segment not known to be synced was read
    bool after_clean_stop = false;      // the last leader had called close()
};

struct StoreUsage {
    Bytes resident_bytes{};  // live records of class resident, with headers and padding
    Bytes window_bytes{};
    std::uint64_t resident_samples = 0;
    std::uint64_t window_samples = 0;
    Bytes file_bytes{};        // size of the segment files, including dead records and footers
    Bytes unfinished_bytes{};  // allocated for samples that are being written in parts
    Bytes written_bytes{};     // written to segment files since open()
};

// A large sample that is being stored in parts, in a segment of its own. If it is destroyed without
// finish(), its disk space is freed and nothing was published. Destroy it before the store.
class SampleWriter {
public:
    SampleWriter(const SampleWriter&) = delete;
    SampleWriter& operator=(const SampleWriter&) = delete;
    ~SampleWriter();

    // Writes payload bytes from `offset` on. Parts may be written in any order and in parallel,
    // each byte once. Errors: as NodeStore::append().
    Status write(std::uint64_t offset, std::span<const std::byte> part);

    // Publishes the sample. Call it once, after all bytes. `crc32c`: checksum of the payload.
    Result<domain::Residency> finish(std::uint32_t crc32c);

private:
    friend class NodeStore;

    struct Slot {
        std::shared_ptr<SegmentWriter> writer;
        std::uint64_t record_offset = 0;
    };

    SampleWriter(NodeStore& store, domain::SampleId sample, std::uint64_t payload_bytes, Slot slot)
        : store_(store),
          sample_(sample),
          payload_bytes_(payload_bytes),
          slot_(std::move(slot)) {}

    NodeStore& store_;
    domain::SampleId sample_;
    std::uint64_t payload_bytes_;
    Slot slot_;
    bool is_over_ = false;
};

// The writer's side of one revision in one node directory: its segments and residency table. Owns
// the state files and everything in data/ but the manifests. Thread-safe: append() may be called
// from several I/O threads, all other calls too; it publishes the payload before the word
// (release). Starts no thread; find() takes no lock. Destruction without close() is like a crash of
// the process: no published sample is lost.
//
// Errors: kInvalidArgument: the caller's mistake; kResourceExhausted: the disk is full or the write
// would use reservedFree; kUnavailable: read-only and I/O errors; kCancelled: after close(). On any
// error nothing was published and stored samples stay readable.
//
// One lock guards the bookkeeping and the order of publishing; payloads are written and files
// sealed, synced and unlinked outside it. The residency table is written only under the lock and
// read without it.
class NodeStore {
public:
    // Scans the directory, drops records that cannot be trusted, rebuilds the residency table (in
    // place, because readers may have it mapped). `device` and the bytes of `manifest` must outlive
    // the store.
    static Result<std::unique_ptr<NodeStore>> open(
        Device& device, const domain::ManifestView& manifest, StoreOptions options);

    NodeStore(const NodeStore&) = delete;
    NodeStore& operator=(const NodeStore&) = delete;
    ~NodeStore() = default;

    [[nodiscard]] RecoveryReport recovery() const { return report_; }

    // Stores and publishes the payload of `sample`, which must have the manifest's length. If the
    // sample is stored already, only returns its place. kCorruption: `crc32c` is not the payload's.
    Result<domain::Residency> append(
        domain::SampleId sample,
        std::span<const std::byte> payload,
        domain::SegmentClass segment_class,
        std::optional<std::uint32_t> crc32c = std::nullopt);

    // Begins to store a sample in parts, for samples too large for memory, and allocates its disk
    // blocks. Until it ends, append() of the same sample waits. kAlreadyExists: the sample is
    // stored. Other errors: as append().
    Result<std::unique_ptr<SampleWriter>> begin(
        domain::SampleId sample, domain::SegmentClass segment_class);

    [[nodiscard]] std::optional<domain::Residency> find(domain::SampleId sample) const;

    // Makes a sample absent. Its segment is unlinked when no sample in it is live; readers keep
    // existing maps of it.
    void drop(domain::SampleId sample);

    // Hints: read a resident sample into the page cache before use, or drop it from there after
    // use. They never fail.
    void will_need(domain::SampleId sample) { advise(sample, true); }

    void wont_need(domain::SampleId sample) { advise(sample, false); }

    // Reads and checks a stored sample. kNotFound: absent. kCorruption: damaged; it stays until
    // verify() is called. Otherwise the device's error.
    Result<RecordBytes> read(domain::SampleId sample);

    // Re-reads a stored sample; drops it if its checksum is wrong. False: wrong or absent.
    bool verify(domain::SampleId sample);

    [[nodiscard]] StoreUsage usage() const;

    // Background work. Copies live samples of the emptiest sealed segments forward and unlinks
    // those segments until none is less than half live, then syncs sealed segments, so that a
    // reboot need not re-read them; about `budget` bytes per call. True: nothing is left to do.
    Result<bool> compact(Bytes budget);

    // Seals open segments, syncs, writes the state file with clean = true. Call it on an orderly
    // stop.
    Status close();

private:
    friend class SampleWriter;

    // A payload being stored. `replaces`: the sample's entry in the residency table when the caller
    // looked: 0 for a new sample, its old place for a copy by compact(). The payload is published
    // only if the table still has that entry.
    struct Incoming {
        domain::SampleId sample;
        std::span<const std::byte> payload;
        domain::SegmentClass segment_class;
        std::uint64_t replaces;
        std::uint32_t crc32c;
    };

    using WriterPtr = std::shared_ptr<SegmentWriter>;
    using OpenSegments = std::map<domain::SegmentClass, WriterPtr>;

    using Slot = SampleWriter::Slot;

    struct Shared {
        SegmentTable segments;
        SegmentNumbers numbers;
        OpenSegments open{};                       // segments that take the next records, by class
        std::vector<WriterPtr> retired{};          // takes no more records, waits for its footer
        std::vector<domain::SegmentSeq> doomed{};  // have no live samples, and are to be unlinked
        std::unordered_map<domain::SampleId, std::uint64_t>
            in_flight{};  // by sample: its Incoming::replaces
        std::uint64_t written_bytes = 0;
        std::uint64_t unfinished_bytes = 0;  // capacity of all segments of SampleWriters
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
    [[nodiscard]] Status check_sample(
        domain::SampleId sample,
        std::uint64_t payload_bytes,
        domain::SegmentClass segment_class) const;
    Result<Slot> reserve(Shared& shared, const Incoming& incoming);
    Result<Slot> reserve_alone(
        Shared& shared,
        domain::SampleId sample,
        domain::SegmentClass segment_class,
        bool checks_space);
    Result<WriterPtr> open_segment(
        Shared& shared, domain::SegmentClass segment_class, std::uint64_t capacity_bytes);
    [[nodiscard]] Status check_space(std::uint64_t wanted_bytes) const;
    Status write_record(Locked& shared, const Incoming& incoming, const Slot& slot);
    void commit(Shared& shared, const Slot& slot, bool written);
    void end(SampleWriter& sample, bool written);
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

    // These members are thread-safe by themselves.
    std::unique_ptr<ResidencyFile> table_;
    SegmentFiles files_;
    mutable Guarded<Shared> shared_;   // the lock also serializes writes of the state file
    std::condition_variable settled_;  // with the lock of shared_: a record was published or failed
    std::mutex upkeep_;                // one compact() or close() at a time; taken before shared_
};

}  // namespace stoker::sidecar
