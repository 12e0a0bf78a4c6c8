#pragma once

#include <cstdint>
#include <memory>

#include "common/base/result.h"
#include "common/domain/manifest.h"
#include "sidecar/device/device.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/residency_file.h"
#include "sidecar/store/segment_table.h"
#include "sidecar/store/store_state.h"

namespace stoker::sidecar {

// A node directory after recovery: the initial state of a store.
struct RecoveredDirectory {
    std::unique_ptr<ResidencyFile> table;  // agrees exactly with `segments`
    SegmentTable segments;                 // no segment is growing
    std::uint64_t lowest_number = 0;       // lowest number for new segments
    RecoveryReport report;
};

// Reads a node directory after a crash, a reboot, another version or another revision; drops
// records that cannot be trusted; seals segments where possible; corrects the residency table word
// by word, in place.
//
// Under the same boot the table decides which samples were dropped or published, and the segments
// decide the rest. After a reboot, or without a state file, only the segments count, and payloads
// are verified unless the state lists them as synced. Foreign files are not touched.
//
// Errors: the directory cannot be listed, or the table cannot be written. An unreadable segment
// stays in place and counts as dropped.
Result<RecoveredDirectory> recover_directory(
    Device& device, const domain::ManifestView& manifest, const StoreOptions& options);

}  // namespace stoker::sidecar
