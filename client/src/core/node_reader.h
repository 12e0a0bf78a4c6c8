#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/src/core/catalog.h"
#include "client/src/core/mapped_file.h"
#include "client/src/core/shared_words.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/domain/ids.h"
#include "common/domain/manifest.h"
#include "common/domain/segment_format.h"

namespace stoker::client {

// When the payload's CRC-32C is checked: at the first access to a sample, at every read, or never
// (the leader verified it before storing). Processes forked from the one that opened the reader
// share their checks: only the first access in any of them counts as first.
enum class Verify : std::uint8_t { kFirst, kAlways, kNever };

struct NodeReaderOptions {
    std::string directory{};        // the node directory, readable
    domain::RevisionId revision{};  // selects its manifest and residency table
    Verify verify = Verify::kFirst;
    // Maps of segments, at least 1. Kernels allow a process 65530 maps in all; a reader that gets
    // no more closes its oldest maps.
    std::size_t segment_maps_max = 40000;
    // true: the directory belongs to another namespace, which may truncate or rewrite files at any
    // time; samples are copied and verified in the copy at each read (unless `verify` is kNever),
    // and the manifest is copied. false: samples are viewed in place and trusted after their check.
    bool guest = false;
};

// Counters of this process since open().
struct NodeReaderCounts {
    std::uint64_t hits = 0;
    std::uint64_t hit_bytes = 0;
    std::uint64_t corrupt =
        0;  // wrong record or checksum, or an unreadable page; reported as misses
};

// The payload of one sample, preceded by its record header. Stays mapped while `pin` is held, also
// after the file is unlinked. A guest's reader returns a private copy. Others return mapped bytes:
// touching them raises SIGBUS if the file was truncated since or the disk fails.
struct SampleView {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> pin;
    domain::SegmentSeq seq{};
};

// One segment file, mapped once to its full capacity. Shared by the reader's table and by every
// view of a sample in it, so a view outlives eviction and unlinking. Holds no file descriptor.
// Thread-safe.
class SegmentMap {
public:
    // Opens `<seq>.seg` below the directory `segments_fd`. kNotFound: unlinked; read the residency
    // table again. kCorruption, kInvalidArgument: a segment of another revision or number, or
    // another format version.
    static Result<std::shared_ptr<SegmentMap>> open(
        int segments_fd, domain::SegmentSeq seq, domain::RevisionId revision);

    // The bytes [offset, offset + length); nullopt if the file ends before their end (after
    // checking whether it grew). Never returns bytes beyond the end of the file.
    [[nodiscard]] std::optional<std::span<const std::byte>> slice(
        int segments_fd, std::uint64_t offset, std::uint64_t length_bytes) const;

    // Whether the file still exists under its name; sequence numbers are never reused.
    [[nodiscard]] bool is_linked(int segments_fd) const;

    [[nodiscard]] domain::SegmentSeq seq() const { return seq_; }

private:
    SegmentMap(MappedFile file, domain::SegmentSeq seq, std::uint64_t file_bytes)
        : file_(std::move(file)),
          seq_(seq),
          file_bytes_(file_bytes) {}

    MappedFile file_;
    domain::SegmentSeq seq_;
    mutable std::atomic<std::uint64_t> file_bytes_;  // largest size seen; a segment file only grows
};

// A sample's location by the residency table; not yet checked.
struct Location {
    std::uint64_t word = 0;
    std::span<const std::byte> record;  // record header and payload
    std::shared_ptr<const SegmentMap> segment;
};

// Reads a node directory without its sidecar: residency word, segment map, view; no system call for
// a sample in a segment that is mapped. Owns the maps; never writes. A truncated file causes a
// miss, never SIGBUS (copy_guarded() in mapped_file.h).
//
// Threads: one at a time (Python: under the GIL), except check() and manifest(), which any thread
// may call.
class NodeReader {
public:
    // Maps and verifies the manifest, and maps the residency table. A missing table (the leader has
    // not made it yet) is no error: every read misses until refresh() finds it. kNotFound: no such
    // manifest. kCorruption, kInvalidArgument: damaged, or of another version or revision.
    static Result<std::unique_ptr<NodeReader>> open(NodeReaderOptions options);

    [[nodiscard]] const domain::ManifestView& manifest() const { return catalog_->manifest(); }

    [[nodiscard]] const std::shared_ptr<const Catalog>& catalog() const { return catalog_; }

    // locate(), then check(). `id` must be below manifest().sample_count(). nullopt: a miss.
    [[nodiscard]] std::optional<SampleView> read(domain::SampleId id);

    // Finds the record by residency word and segment table; cheap, because it accesses none of the
    // sample's own pages.
    [[nodiscard]] std::optional<Location> locate(domain::SampleId id);

    // Whether the residency table has the sample now. Not counted as a read.
    [[nodiscard]] bool is_resident(domain::SampleId id) const { return residency_word(id) != 0; }

    // Whether check() only has to build the view; it then takes nanoseconds and never waits for a
    // disk.
    [[nodiscard]] bool is_checked(domain::SampleId id, const Location& where) const;

    // Checks the record against its word (`options.verify`). nullopt: a miss, counted as corrupt.
    [[nodiscard]] std::optional<SampleView> check(domain::SampleId id, Location where);

    // Shares the checks with all processes that use this file, from now on. The file's words begin
    // at `offset_bytes`, a multiple of 4. Only these processes may have write access to it. Keeps
    // no descriptor. kInvalidArgument: too short; kUnavailable: cannot be mapped.
    Status share_checks(int file, std::uint64_t offset_bytes);

    // Maps the residency table again after the leader replaced the file. Call it when the sidecar's
    // answer and the table disagree. Errors as open().
    Status refresh();

    // Closes maps of unlinked files, which would otherwise keep their disk space: checks the next
    // `checks` maps (one system call each), round robin. Existing views stay valid.
    void retire_unlinked(std::size_t checks);

    // Number of mapped segments.
    [[nodiscard]] std::size_t map_count() const { return segments_.size(); }

    [[nodiscard]] NodeReaderCounts counts() const;

private:
    struct Entry {
        std::shared_ptr<const SegmentMap> map;
        std::uint64_t last_used = 0;  // value of reads_ at the last use
    };

    NodeReader(NodeReaderOptions options, std::shared_ptr<const Catalog> catalog);

    [[nodiscard]] std::uint64_t residency_word(domain::SampleId id) const;
    [[nodiscard]] std::shared_ptr<const SegmentMap> segment(domain::SegmentSeq seq);
    void retire_one();
    void retire(std::size_t place);
    [[nodiscard]] bool verify(
        domain::SampleId id, std::span<const std::byte> record, SampleView& view) const;

    NodeReaderOptions options_;
    std::shared_ptr<const Catalog> catalog_;
    MappedFile residency_file_;
    mutable bool residency_lost_ = false;  // truncated: every read misses until refresh()
    UniqueFd segments_fd_;
    std::vector<Entry> segments_;
    std::unordered_map<std::uint32_t, std::size_t> places_;  // in segments_, by sequence number
    std::size_t unlinked_cursor_ = 0;                        // index of retire_unlinked()'s next
    std::size_t victim_cursor_ = 0;                          // index where retire_one() continues
    std::uint64_t reads_ = 0;
    SharedWords verified_;  // by id: fingerprint of the word that was checked, or 0
    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> hit_bytes_{0};
    std::atomic<std::uint64_t> corrupt_{0};
};

}  // namespace stoker::client
