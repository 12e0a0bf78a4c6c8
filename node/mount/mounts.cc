#include "node/mount/mounts.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "node/disk/posix.h"
#include "node/mount/fuse_mount.h"

namespace stoker::node {

namespace {

constexpr unsigned kTargetMode = 0750;
constexpr const char* kVolumeFile =
    "vol_data.json";  // the kubelet's metadata beside each CSI target

// statx() with these flags asks the kernel only: a FUSE mount may have no server that answers.
constexpr int kNoRequest = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC;

bool is_mount_point(const std::string& path) {
    struct statx status {};

    return ::statx(AT_FDCWD, path.c_str(), kNoRequest, 0, &status) == 0 &&
           (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Whether the mount at `path` is one of mount_files(). Reads the mount table, because statfs()
// would ask the mount's server.
bool is_of_files(const std::string& path) {
    struct statx status {};

    if (::statx(AT_FDCWD, path.c_str(), kNoRequest, STATX_MNT_ID, &status) != 0) {
        return false;
    }
    const std::string id = fmt::format("{} ", status.stx_mnt_id);
    const std::string type = fmt::format(" - {} ", kFilesType);
    std::ifstream table{"/proc/self/mountinfo"};
    for (std::string line; std::getline(table, line);) {
        if (line.starts_with(id)) {
            return line.find(type) != std::string::npos;
        }
    }
    return false;
}

Result<FileId> mounted_id(const std::string& target) {
    struct statx status {};

    if (::statx(AT_FDCWD, target.c_str(), kNoRequest, 0, &status) != 0) {
        return fail(posix_error(errno, "looking at", target));
    }
    return FileId{::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

Status make_target(const std::string& target) {
    if (::mkdir(target.c_str(), kTargetMode) != 0 && errno != EEXIST) {
        return fail(posix_error(errno, "making", target));
    }
    return {};
}

class KernelMounts final : public Mounts {
public:
    KernelMounts(std::string kubelet_directory, std::string driver)
        : kubelet_directory_(std::move(kubelet_directory)),
          driver_(std::move(driver)) {}

    Status mount(int source, const std::string& target, Access access) override {
        const std::lock_guard lock(mutex_);
        if (is_mount_point(target)) {
            return {};
        }
        STOKER_TRY_VOID(make_target(target));
        // Sets the attributes before the mount is attached. If a bind mount were remounted
        // read-only, the remount would not propagate from this DaemonSet to the host, and the pod
        // could write.
        const UniqueFd tree{
            ::open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
        if (!tree.valid()) {
            return fail(posix_error(errno, "cloning the mount for", target));
        }
        mount_attr attributes{};
        attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                              (access == Access::kReadOnly ? MOUNT_ATTR_RDONLY : 0U);
        if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
            return fail(posix_error(errno, "setting the mount's attributes for", target));
        }
        if (::move_mount(tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
            return fail(posix_error(errno, "mounting", target));
        }
        return {};
    }

    Result<std::optional<UniqueFd>> mount_files(const std::string& target) override {
        const std::lock_guard lock(mutex_);
        if (is_mount_point(target)) {
            return std::optional<UniqueFd>{};
        }
        STOKER_TRY_VOID(make_target(target));
        STOKER_TRY(UniqueFd connection, mount_fuse(target));
        return std::optional{std::move(connection)};
    }

    Status unmount(const std::string& target) override {
        const std::lock_guard lock(mutex_);
        while (is_mount_point(target)) {
            const int force = is_of_files(target) ? MNT_FORCE : 0;
            if (::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW | force) != 0) {
                return fail(posix_error(errno, "unmounting", target));
            }
        }
        if (::rmdir(target.c_str()) != 0 && errno != ENOENT) {
            return fail(posix_error(errno, "removing", target));
        }
        return {};
    }

    // <kubelet>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/{vol_data.json, mount}
    Result<std::set<FileId>> mounted() override {
        std::set<FileId> result;
        std::error_code error;
        const std::filesystem::path pods = std::filesystem::path{kubelet_directory_} / "pods";
        for (const auto& pod : std::filesystem::directory_iterator{pods, error}) {
            std::error_code no_volumes;
            for (const auto& volume : std::filesystem::directory_iterator{
                     pod.path() / "volumes" / "kubernetes.io~csi", no_volumes}) {
                add_if_ours(volume.path(), result);
            }
        }
        if (error) {
            return fail(posix_error(error.value(), "listing", pods.string()));
        }
        return result;
    }

private:
    void add_if_ours(const std::filesystem::path& volume, std::set<FileId>& result) const {
        std::ifstream file{volume / kVolumeFile};
        std::ostringstream text;
        text << file.rdbuf();
        if (text.str().find(fmt::format("\"driverName\":\"{}\"", driver_)) == std::string::npos) {
            return;
        }
        result.insert(mounted_id((volume / "mount").string()).value_or(FileId{}));
    }

    std::string kubelet_directory_;
    std::string driver_;
    std::mutex mutex_;  // look-up and mount must be one atomic step
};

}  // namespace

std::unique_ptr<Mounts> make_mounts(std::string kubelet_directory, std::string driver) {
    return std::make_unique<KernelMounts>(std::move(kubelet_directory), std::move(driver));
}

}  // namespace stoker::node
