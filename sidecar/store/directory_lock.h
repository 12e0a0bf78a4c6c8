#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Leadership of a node directory: `flock` on its file control/lock. Whoever holds it may write; the
// kernel lets it go when the holder dies, however it dies. Must live as long as the NodeStore of
// the directory. Move-only.
class DirectoryLock {
public:
    // Does not wait. nullopt: another process (or another lock object of this one) leads.
    // kForbidden, kUnavailable, kResourceExhausted: the directory cannot be written at all.
    static Result<std::optional<DirectoryLock>> try_acquire(
        Device& device, const std::string& directory);

private:
    explicit DirectoryLock(std::unique_ptr<DeviceLock> lock)
        : lock_(std::move(lock)) {}

    std::unique_ptr<DeviceLock> lock_;
};

}  // namespace stoker::sidecar
