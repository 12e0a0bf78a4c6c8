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
#include "client/src/core/segment_map.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/domain/ids.h"
#include "common/domain/manifest.h"

namespace stoker::client {

// When the payload's CRC-32C is compared with its record: at the first touch of a sample by this
// process, at every read, or never (the leader verified it on the way in). A forked process
// inherits what its parent has verified.
enum class Verify : std::uint8_t { kFirst, kAlways, kNever };

struct NodeReaderOptions {
    std::string directory{};        // the node directory, readable
    domain::RevisionId revision{};  // which manifest and residency table in it
    Verify verify = Verify::kFirst;
    std::size_t segment_maps_max = 16384;  // kernels allow a process 65530 maps in all
    // The directory belongs to another namespace, whose files may be cut or rewritten at any time:
    // samples are copied, and verified in the copy at each read (unless `verify` is kNever); the
    // manifest is copied, too. false: views in place, of files that are trusted once they were
    // verified.
    bool guest = false;
};

// Counted since open, in this process.
struct NodeReaderCounts {
    std::uint64_t hits = 0;
    std::uint64_t hit_bytes = 0;
    std::uint64_t misses = 0;  // absent, or gone between the word and the file
    std::uint64_t corrupt =
        0;  // wrong record or checksum, or a page that the disk does not give; read as misses
    std::uint64_t segments_mapped = 0;
    std::uint64_t segments_retired =
        0;  // maps given back: unlinked files and the least recently used
};

// The payload of one sample, behind its record header. Stays mapped for as long as `pin` is held,
// also when the file is unlinked. A guest's reader gives a copy, which nobody changes. Others read
// in place: touching it raises SIGBUS when somebody has cut the file since, or the disk fails.
struct SampleView {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> pin;
    domain::SegmentSeq seq{};
};

// Where the residency table says a sample is; not yet checked.
struct Location {
    std::uint64_t word = 0;
    std::span<const std::byte> record;  // record header and payload
    std::shared_ptr<const SegmentMap> pin;
};

// Reads a node directory without asking anybody: residency word, segment map, view; no system call
// for a sample in a segment that is mapped. Owns the maps; never writes. A file that was cut under
// its map is a miss here and never SIGBUS (bus_guard.h).
//
// Threads: one at a time (Python: under the GIL), except check() and manifest(), which any thread
// may call.
class NodeReader {
public:
    // Maps the manifest and verifies it, and maps the residency table. A table that is not there
    // (the leader is about to make it) is no error: everything is a miss until refresh() finds it.
    // kNotFound: no such manifest. kCorruption, kInvalidArgument: damaged, of another version or
    // revision.
    static Result<std::unique_ptr<NodeReader>> open(NodeReaderOptions options);

    [[nodiscard]] const domain::ManifestView& manifest() const { return catalog_->manifest(); }

    [[nodiscard]] const std::shared_ptr<const Catalog>& catalog() const { return catalog_; }

    // locate() and check() in one. `id` must be below manifest().sample_count(). nullopt: a miss.
    [[nodiscard]] std::optional<SampleView> read(domain::SampleId id);

    // Finds the record by residency word and segment table; cheap, touches none of the sample's own
    // pages.
    [[nodiscard]] std::optional<Location> locate(domain::SampleId id);

    // Whether the residency table has the sample now. Counts as no read.
    [[nodiscard]] bool is_resident(domain::SampleId id) const { return residency_word(id) != 0; }

    // Whether check() has nothing left to do but build the view, so that it takes nanoseconds and
    // never waits for a disk.
    [[nodiscard]] bool is_checked(domain::SampleId id, const Location& where) const;

    // Makes sure that the record is what the word promised (`options.verify`). nullopt: a miss,
    // counted as corrupt.
    [[nodiscard]] std::optional<SampleView> check(domain::SampleId id, Location where);

    // Maps the residency table again when the leader has replaced the file; to be called when an
    // answer of the sidecar and the table disagree. Errors as open().
    Status refresh();

    // Gives up maps of files that were unlinked, which would otherwise keep their disk space: looks
    // at up to `checks` maps (one system call each), going round. Views that are out stay valid.
    void retire_unlinked(std::size_t checks);

    [[nodiscard]] NodeReaderCounts counts() const;

    [[nodiscard]] std::size_t mapped_segments() const { return segments_.size(); }

private:
    struct Entry {
        std::shared_ptr<SegmentMap> map;
        std::uint64_t last_used = 0;
    };

    NodeReader(NodeReaderOptions options, std::shared_ptr<const Catalog> catalog);

    [[nodiscard]] std::uint64_t residency_word(domain::SampleId id) const;
    SegmentMap* segment(domain::SegmentSeq seq, std::shared_ptr<const SegmentMap>& pin);
    void retire_least_recently_used();
    [[nodiscard]] bool is_intact(domain::SampleId id, const Location& where) const;
    [[nodiscard]] std::optional<SampleView> copy(domain::SampleId id, const Location& where);

    NodeReaderOptions options_;
    std::shared_ptr<const Catalog> catalog_;
    MappedFile residency_file_;
    mutable bool residency_lost_ = false;  // the file was cut: everything is a miss until refresh()
    UniqueFd segments_fd_;
    std::unordered_map<std::uint32_t, Entry> segments_;
    std::vector<std::uint32_t> retire_order_;  // sequence numbers still to look at in this round
    std::uint64_t reads_ = 0;
    std::unique_ptr<std::atomic<std::uint32_t>[]>
        verified_;  // by id: fingerprint of the word that was checked, or 0
    NodeReaderCounts counts_;
    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> hit_bytes_{0};
    std::atomic<std::uint64_t> corrupt_{0};
};

}  // namespace stoker::client
