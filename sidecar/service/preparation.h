#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest_marks.h"
#include "common/domain/residency_word.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/sample_chunks.h"
#include "sidecar/core/stream_plan.h"
#include "sidecar/device/device.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/current_revision.h"
#include "sidecar/store/manifest_file.h"
#include "sidecar/store/node_store.h"

namespace stoker::sidecar {

// Everything that a leader needs before it can serve.
struct Preparation {
    enum class Source : std::uint8_t { kKept, kListed, kTaken };

    std::shared_ptr<const MappedManifest> manifest;
    Source source = Source::kKept;  // of the manifest
    CurrentRevision current;        // as it is in the directory now
    std::unique_ptr<NodeStore> store;
    std::vector<std::pair<SampleIndex, domain::SegmentClass>> stored;  // by id
    domain::ManifestMarks marks;                                       // only if requested
    SampleChunks chunks;  // empty if the samples are not in chunks
};

struct PreparationOptions {
    std::string directory;          // data/ of the node directory
    std::string control_directory;  // control/ of it
    std::string source;             // Origin::describe(); another source is another dataset
    std::string job_uid;            // empty: no job
    // The pods of one batch/v1 Job keep their revision when their sidecars restart. A job that
    // resumes after a suspension has a new Job.
    std::string attempt_uid;
    bool keep_revision = false;  // clients use the existing manifest: do not list again
    bool list_again = false;     // list again, even for the same attempt
    bool marks = false;          // compute marks
    // Listings of other attempts that are this old or older are not used; nullopt: any age.
    std::optional<Duration> listing_age_max{};
    WallTime wall_now{};     // the time of a new listing
    bool use_young = false;  // our key or our job's may read a listing that is_young(): use it
    // The directory has this manifest from another node, and our key or our job's may read it: use it
    // as if we had listed it.
    std::optional<CurrentRevision> taken{};
    Bytes window_bytes{};
    StoreOptions store;  // folders and segment sizes are set by prepare_dataset()
};

// Segment sizes for a disk of `total` bytes and a window of `window` bytes: at most the store's
// usual sizes, but small enough that a few segments do not fill the disk or the window, because
// space is freed by whole segments.
struct SegmentSizes {
    Bytes resident;
    Bytes window;

    bool operator==(const SegmentSizes&) const = default;
};

SegmentSizes segment_sizes(Bytes total, Bytes window);

// Whether prepare_dataset() would use the current manifest without listing: clients use it, or it was
// listed for the same batch/v1 Job (unless `list_again`).
bool is_reusable(const std::optional<CurrentRevision>& current, const PreparationOptions& options);

// Whether another attempt's listing in the directory is young enough for ours; false unless
// `listing_age_max` is set.
bool is_young(const std::optional<CurrentRevision>& current, const PreparationOptions& options);

// Blocking: finds the directory's current manifest, or lists the origin and makes a new one, then
// opens the store. Reuses the current manifest if clients use it, if it was listed for the same
// batch/v1 Job (unless `list_again`), or, without jobs and `listing_age_max`, if the origin is
// unreachable.
//
// Errors: of the listing (bucket missing, forbidden, unreachable), kInvalidArgument for an empty
// dataset or an invalid key, and those of the store and the disk.
Result<Preparation> prepare_dataset(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
