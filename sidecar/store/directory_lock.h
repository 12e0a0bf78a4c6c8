#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// Leadership of a node directory: `flock` on its file control/lock. Only the holder may write; the
// kernel releases the lock when the holder's process ends. Must outlive the directory's NodeStore.
// Move-only.
class DirectoryLock {
public:
    // Tries to take the lock; does not wait. nullopt: another process (or lock object of this one)
    // leads. kForbidden, kUnavailable, kResourceExhausted: the directory is not writable.
    static Result<std::optional<DirectoryLock>> try_acquire(
        Device& device, const std::string& directory);

private:
    explicit DirectoryLock(std::unique_ptr<DeviceLock> lock)
        : lock_(std::move(lock)) {}

    std::unique_ptr<DeviceLock> lock_;
};

}  // namespace stoker::sidecar
