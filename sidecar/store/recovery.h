#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "sidecar/device/device.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/residency_file.h"
#include "sidecar/store/segment_table.h"
#include "sidecar/store/store_state.h"

namespace stoker::sidecar {

// A node directory after recovery: what a store starts from.
struct RecoveredDirectory {
    std::unique_ptr<ResidencyFile> table;  // says exactly what `segments` holds
    SegmentTable segments;                 // none of them growing
    std::uint64_t lowest_number = 0;       // new segments must have this number or a higher one
    RecoveryReport report;
};

// Reads a node directory as a crash, a reboot, another version or another revision may have left
// it; drops what cannot be trusted; seals what can be sealed; makes the residency table agree, word
// by word and in place.
//
// Under the same boot the table is believed about what was dropped and published, and the segments
// about everything else; after a reboot, or without a state file, the segments alone count and
// their payloads are verified unless the state says that they were synced. Foreign files are not
// touched.
//
// Errors: the directory cannot be listed, or the table cannot be written. A segment that cannot be
// read is left where it is and counts as dropped.
Result<RecoveredDirectory> recover_directory(
    Device& device, const domain::ManifestView& manifest, const StoreOptions& options);

}  // namespace stoker::sidecar
