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
#include "sidecar/core/stream_plan.h"
#include "sidecar/device/device.h"
#include "sidecar/origin/origin.h"
#include "sidecar/store/manifest_file.h"
#include "sidecar/store/node_store.h"

namespace stoker::sidecar {

// A leader needs these before it can serve.
struct Preparation {
    std::unique_ptr<MappedManifest> manifest;
    std::unique_ptr<NodeStore> store;
    std::vector<std::pair<SampleIndex, domain::SegmentClass>> stored;  // by id
    domain::ManifestMarks marks;                                       // where they are wanted
};

struct PreparationOptions {
    std::string directory;          // data/ of the node directory
    std::string control_directory;  // control/ of it
    std::string source;             // Origin::describe(): another source is another dataset
    std::string job_uid;            // empty: no job
    // The pods of one batch/v1 Job keep their revision over restarts of their sidecars. A job that
    // goes on after a suspension has a new one.
    std::string attempt_uid;
    bool keep_revision = false;  // clients are at work on what is there: do not list again
    bool list_again = false;     // the attempt's own listing is not good enough
    bool marks = false;          // make them
    Bytes window_bytes{};
    StoreOptions store;  // its folders and segment sizes are chosen here
};

// Segment sizes that suit a disk of `total` bytes and a window of `window` bytes: at most the
// store's usual ones, but never so large that a few of them are the whole disk, or the whole
// window, because space comes back by whole segments.
struct SegmentSizes {
    Bytes resident;
    Bytes window;

    bool operator==(const SegmentSizes&) const = default;
};

SegmentSizes segment_sizes(Bytes total, Bytes window);

// Blocking: finds the manifest that is current in the directory, or lists the origin and makes a
// new one, then opens the store. The current manifest is used again when clients are at work on it,
// when it was listed for the same batch/v1 Job (unless that is to list again), or, where
// there are no jobs, when the origin cannot be reached now.
//
// Errors: what the listing says (bucket missing, forbidden, unreachable), kInvalidArgument for an
// empty dataset or a key that cannot be one, and the store's and the disk's.
Result<Preparation> prepare_dataset(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop);

}  // namespace stoker::sidecar
