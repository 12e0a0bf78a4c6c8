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
#include "sidecar/store/manifest_file.h"
#include "sidecar/store/node_store.h"

namespace stoker::sidecar {

// Everything that a leader needs before it can serve.
struct Preparation {
    enum class Source : std::uint8_t { kKept, kListed, kTaken };

    std::shared_ptr<const MappedManifest> manifest;
    Source source = Source::kKept;  // origin of the manifest
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
    // The directory already has this manifest, copied from another node, and our key or our job's
    // may read the dataset: use it as if we had listed it.
    std::optional<domain::RevisionId> taken{};
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
// listed for the same batch/v1 Job (unless `list_again`). Blocking: reads a small file.
bool is_reusable(Device& device, const PreparationOptions& options);

// Blocking: finds the directory's current manifest, or lists the origin and makes a new one, then
// opens the store. Reuses the current manifest if clients use it, if it was listed for the same
// batch/v1 Job (unless `list_again`), or, without jobs, if the origin is unreachable.
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
