#include "sidecar/store/directory_lock.h"

#include "common/domain/node_directory.h"

namespace stoker::sidecar {

Result<std::optional<DirectoryLock>> DirectoryLock::try_acquire(
    Device& device, const std::string& directory) {
    STOKER_TRY(
        auto lock,
        device.try_lock(join_path(domain::control_folder(directory), domain::kLockFile)));
    if (lock == nullptr) {
        return std::optional<DirectoryLock>{};
    }
    return std::optional<DirectoryLock>{DirectoryLock{std::move(lock)}};
}

}  // namespace stoker::sidecar
