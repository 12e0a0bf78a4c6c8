#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/manifest.h"
#include "common/domain/residency_word.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

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
class NodeStore {
public:
    // Scans the directory, drops what cannot be trusted, rebuilds the residency table (in place:
    // readers may have it mapped). `device` and what `manifest` views must outlive the store.
    static Result<std::unique_ptr<NodeStore>> open(
        Device& device, const domain::ManifestView& manifest, StoreOptions options);

    virtual ~NodeStore() = default;

    [[nodiscard]] virtual RecoveryReport recovery() const = 0;

    // Stores the payload of `sample` (its length must be the manifest's) and publishes it. A sample
    // that is already there is left alone and its place is returned.
    virtual Result<domain::Residency> append(
        domain::SampleId sample,
        std::span<const std::byte> payload,
        domain::SegmentClass segment_class) = 0;

    [[nodiscard]] virtual std::optional<domain::Residency> find(domain::SampleId sample) const = 0;

    // Makes a sample absent. Its segment is unlinked as soon as no sample in it is live; readers
    // that hold a map keep it.
    virtual void drop(domain::SampleId sample) = 0;

    // Reads a resident sample into the page cache just before use, and lets it go behind the
    // reader. Hints: never fail.
    virtual void will_need(domain::SampleId sample) = 0;
    virtual void wont_need(domain::SampleId sample) = 0;

    // Re-reads a stored sample and drops it when its checksum is wrong. false: it was wrong (or
    // absent).
    virtual bool verify(domain::SampleId sample) = 0;

    [[nodiscard]] virtual StoreUsage usage() const = 0;

    // Work for idle moments. Copies live samples of the emptiest sealed segments forward and
    // unlinks them until no segment is less than half live, then syncs sealed segments, so that a
    // reboot need not re-read them; bounded to about `budget` bytes a call. True when there is
    // nothing left to do.
    virtual Result<bool> compact(Bytes budget) = 0;

    // Seals open segments, syncs, writes the state file with clean = true. Called on an orderly
    // stop.
    virtual Status close() = 0;
};

}  // namespace stoker::sidecar
