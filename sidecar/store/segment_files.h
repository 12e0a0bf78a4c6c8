#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Keeps the most recently used segment files open, for reading and for hints: a hint per sample
// must not cost an open(), and a large cache has more segments than a process may have descriptors.
// Thread-safe.
class SegmentFiles {
public:
    SegmentFiles(Device& device, std::string directory)
        : device_(device),
          directory_(std::move(directory)) {}

    // kNotFound: the segment is unlinked.
    Result<std::shared_ptr<DeviceFile>> open(domain::SegmentSeq seq);

    // Closes the file. Call it after an unlink, so that the file's blocks are freed.
    void forget(domain::SegmentSeq seq);

private:
    static constexpr std::size_t kOpenMax = 64;
    using Entry = std::pair<domain::SegmentSeq, std::shared_ptr<DeviceFile>>;

    Device& device_;
    std::string directory_;
    Guarded<std::list<Entry>> recent_;  // most recently used first
};

}  // namespace stoker::sidecar
