#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "client/src/core/node_reader.h"
#include "client/src/core/sidecar_client.h"
#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "sidecar/attached/recent_samples.h"
#include "sidecar/attached/sequential_reads.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/origin.h"

// One dataset as stoker-s3 or stoker-files serves it: its node directory and its link to the
// sidecar.
namespace stoker::attached {

// One revision on this node. Thread-safe. Stays usable when the sidecar that announced it has
// ended: the files remain.
class DatasetFiles {
public:
    // `directory`: with manifest and segments. Errors as NodeReader::open().
    static Result<std::shared_ptr<DatasetFiles>> open(
        std::string directory, domain::RevisionId revision, bool guest);

    [[nodiscard]] const domain::ManifestView& manifest() const { return reader_->manifest(); }

    // The manifest file's modification time, used for all objects, because a manifest does not
    // store the times of its objects.
    [[nodiscard]] std::chrono::sys_seconds modified() const { return modified_; }

    [[nodiscard]] const std::string& directory() const { return directory_; }

    [[nodiscard]] domain::RevisionId revision() const { return revision_; }

    struct Found {
        client::SampleView view;
        // Offset of the record (not of its payload) in the segment's file; nullopt: the view is a
        // copy.
        std::optional<std::uint64_t> record_offset;
        bool is_kept = false;  // the sample is resident, not only passing through the window
    };

    // Finds a sample whose checksum was verified before; never waits for a disk. nullopt: call
    // read() instead.
    std::optional<Found> read_checked(domain::SampleId id);

    // Reads a sample; verifies its checksum if that was not done before, and so may wait for a
    // disk. nullopt: the sample is not on this node.
    std::optional<Found> read(domain::SampleId id);

    // Copies of fetched samples, for clients that read them in several ranges.
    RecentSamples& recent() { return recent_; }

    // Detects sequential reads of objects that are cached in blocks.
    SequentialReads& sequential() { return sequential_; }

    // Calls NodeReader::refresh() and retire_unlinked().
    void refresh();
    void retire_unlinked(std::size_t checks);

private:
    std::optional<Found> check(domain::SampleId id, client::Location where);

    DatasetFiles(
        std::unique_ptr<client::NodeReader> reader,
        std::string directory,
        domain::RevisionId revision,
        bool guest);

    std::mutex mutex_;  // guards reader_, except its check() and manifest()
    std::unique_ptr<client::NodeReader> reader_;
    std::string directory_;
    domain::RevisionId revision_;
    bool guest_;
    std::chrono::sys_seconds modified_{};
    RecentSamples recent_;
    SequentialReads sequential_;
};

// Counters since the start. Hits: samples read from the node directory without a request to the
// sidecar.
struct ReadCounts {
    std::uint64_t hits = 0;
    std::uint64_t fetched = 0;    // samples that came through the sidecar
    std::uint64_t forwarded = 0;  // samples that came from the origin
    std::uint64_t bytes = 0;
};

// A dataset and this program's connection state for it. Thread-safe.
class CachedDataset {
public:
    CachedDataset(
        std::size_t index,
        const sidecar::DatasetConfig& config,
        std::string client,
        std::unique_ptr<sidecar::Origin> origin);

    [[nodiscard]] std::size_t index() const { return index_; }

    [[nodiscard]] const sidecar::DatasetConfig& config() const { return config_; }

    // This program's name, which it tells the sidecar.
    [[nodiscard]] const std::string& client() const { return client_; }

    // Where the fetch pool reads samples that the sidecar does not deliver; nullptr: the caller of
    // the pool asks the origin itself.
    [[nodiscard]] sidecar::Origin* origin() const { return origin_.get(); }

    // The files of the current revision. nullptr: the sidecar has not announced a revision yet.
    std::shared_ptr<DatasetFiles> files();
    void set_files(std::shared_ptr<DatasetFiles> files);

    // Whether a fetch through the sidecar makes sense now.
    [[nodiscard]] bool is_attached() const { return attached_.load(std::memory_order_relaxed); }

    void set_attached(bool attached) { attached_.store(attached, std::memory_order_relaxed); }

    // Records that a request of this pod writes or deletes the key (below the dataset's prefix).
    // From now on, reads of the key and listings are answered by the origin.
    void note_written(const std::string& key);
    bool is_written(const std::string& key);

    [[nodiscard]] bool has_writes() const { return has_writes_.load(std::memory_order_acquire); }

    // Counts a GET answered from the node. `was_begun`: its range begins at the object's start;
    // only then it counts as a read of the sample.
    void count_hit(domain::SampleId id, std::uint64_t bytes, bool was_begun);
    void count_fetched(std::uint64_t bytes, bool was_begun);
    void count_forwarded();

    ReadCounts counts();
    // Returns, and forgets, the hits that were not yet reported to the sidecar.
    std::vector<std::uint64_t> take_hits();

private:
    struct Told {
        ReadCounts counts;
        std::vector<std::uint64_t> hits;
    };

    struct Writes {
        std::unordered_set<std::string> keys;
        bool is_overflowing = false;
    };

    std::size_t index_;
    sidecar::DatasetConfig config_;
    std::string client_;
    std::unique_ptr<sidecar::Origin> origin_;
    Guarded<std::shared_ptr<DatasetFiles>> files_;
    std::atomic<bool> attached_{false};
    std::atomic<bool> has_writes_{false};
    Guarded<Writes> writes_;
    Guarded<Told> told_;
};

}  // namespace stoker::attached
