#include "sidecar/device/posix_device.h"

#include <cerrno>
#include <mutex>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/posix_error.h"
#include "common/base/unique_fd.h"

namespace stoker::sidecar {

namespace {

constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kPrivateFolderMode = 0700;
constexpr mode_t kPrivateFileMode = 0600;

// Makes one folder. True: it exists, now or before. False: errno has the reason.
bool make_one_folder(const std::string& path, Access access) {
    const bool is_private = access == Access::kOwner;
    const mode_t mode = is_private ? kPrivateFolderMode : kFolderMode;
    if (::mkdir(path.c_str(), mode) == 0) {
        return ::chmod(path.c_str(), mode) == 0;
    }
    if (errno != EEXIST) {
        return false;
    }
    // The mode of a folder that belongs to another user cannot be changed, so it stays.
    return !is_private || ::chmod(path.c_str(), mode) == 0 || errno == EPERM || errno == EROFS;
}

// Repeats a system call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) {
        result = call();
    }
    return result;
}

class PosixFile final : public DeviceFile {
public:
    PosixFile(DeviceTally& tally, UniqueFd fd, std::string path)
        : DeviceFile(tally),
          fd_(std::move(fd)),
          path_(std::move(path)) {}

protected:
    Result<std::size_t> do_read(std::uint64_t offset, std::span<std::byte> out) override {
        const auto got = uninterrupted(
            [&] { return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset)); });
        if (got < 0) {
            return fail_errno("reading", path_);
        }
        return static_cast<std::size_t>(got);
    }

    Result<std::size_t> do_write(
        std::uint64_t offset, std::span<const ConstBuffer> parts) override {
        std::array<iovec, kPartsMax> vectors{};
        for (std::size_t i = 0; i < parts.size(); ++i) {
            // iovec is shared with readv and so not const; pwritev does not write to it.
            vectors.at(i) = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
        }
        const auto written = uninterrupted([&] {
            return ::pwritev(
                fd_.get(),
                vectors.data(),
                static_cast<int>(parts.size()),
                static_cast<off_t>(offset));
        });
        if (written < 0) {
            return fail_errno("writing", path_);
        }
        return static_cast<std::size_t>(written);
    }

    std::unique_lock<std::mutex> do_take_turn() override { return std::unique_lock{turn_}; }

    Status do_truncate(std::uint64_t size_bytes) override {
        const int status =
            uninterrupted([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size_bytes)); });
        return status == 0 ? Status{} : Status{fail_errno("truncating", path_)};
    }

    Status do_allocate(std::uint64_t size_bytes) override {
        int number = EINTR;  // posix_fallocate returns the error instead of setting errno
        while (number == EINTR) {
            number = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(size_bytes));
        }
        return number == 0 ? Status{} : Status{fail(posix_error(number, "allocating", path_))};
    }

    Status do_sync() override {
        const int status = uninterrupted([&] { return ::fdatasync(fd_.get()); });
        return status == 0 ? Status{} : Status{fail_errno("syncing", path_)};
    }

    Result<std::uint64_t> do_size_bytes() override {
        struct stat about {};

        if (::fstat(fd_.get(), &about) != 0) {
            return fail_errno("looking at", path_);
        }
        return static_cast<std::uint64_t>(about.st_size);
    }

    void do_will_need(std::uint64_t offset, std::uint64_t bytes) override {
        ::posix_fadvise(
            fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
    }

    void do_wont_need(std::uint64_t offset, std::uint64_t bytes) override {
        ::posix_fadvise(
            fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
    }

private:
    UniqueFd fd_;
    std::string path_;
    std::mutex turn_;
};

class PosixMapping final : public DeviceMapping {
public:
    PosixMapping(void* address, std::size_t size_bytes, bool writable)
        : DeviceMapping(static_cast<std::byte*>(address), size_bytes, writable),
          address_(address),
          size_bytes_(size_bytes) {}

    ~PosixMapping() override { ::munmap(address_, size_bytes_); }

private:
    void* address_;
    std::size_t size_bytes_;
};

class PosixLock final : public DeviceLock {
public:
    explicit PosixLock(UniqueFd fd)
        : fd_(std::move(fd)) {}

private:
    UniqueFd fd_;  // closing the last descriptor of the open file releases the lock
};

class PosixDevice final : public Device {
protected:
    Result<std::unique_ptr<DeviceFile>> do_create(const std::string& path, Access access) override {
        const mode_t mode = access == Access::kOwner ? kPrivateFileMode : kFileMode;
        UniqueFd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
        if (!fd.valid() || ::fchmod(fd.get(), mode) != 0) {
            return fail_errno("creating", path);
        }
        return std::make_unique<PosixFile>(tally(), std::move(fd), path);
    }

    Result<std::unique_ptr<DeviceFile>> do_open(const std::string& path) override {
        UniqueFd fd{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
        if (!fd.valid() && (errno == EROFS || errno == EACCES)) {
            fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        }
        if (!fd.valid()) {
            return fail_errno("opening", path);
        }
        return std::make_unique<PosixFile>(tally(), std::move(fd), path);
    }

    Result<std::unique_ptr<DeviceMapping>> do_map(const std::string& path, MapMode mode) override {
        const bool writable = mode == MapMode::kReadWrite;
        const UniqueFd fd{::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)};
        if (!fd.valid()) {
            return fail_errno("opening", path);
        }

        struct stat about {};

        if (::fstat(fd.get(), &about) != 0) {
            return fail_errno("looking at", path);
        }
        if (about.st_size == 0) {
            return fail(ErrorCode::kCorruption, fmt::format("{} is empty", path));
        }
        const auto size = static_cast<std::size_t>(about.st_size);
        void* address = ::mmap(
            nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd.get(), 0);
        if (address == MAP_FAILED) {
            return fail_errno("mapping", path);
        }
        return std::make_unique<PosixMapping>(address, size, writable);
    }

    Status do_make_folder(const std::string& path, Access access) override {
        if (make_one_folder(path, access)) {
            return {};
        }
        if (errno != ENOENT || parent_path(path) == path) {
            return fail_errno("making", path);
        }
        STOKER_TRY_VOID(do_make_folder(parent_path(path), Access::kEverybody));
        // Tries once more, now that the parent exists. It must not be a loop: a folder that cannot
        // be made, as in /proc, fails with ENOENT each time.
        return make_one_folder(path, access) ? Status{} : Status{fail_errno("making", path)};
    }

    Status do_unlink(const std::string& path) override {
        return ::unlink(path.c_str()) == 0 ? Status{} : Status{fail_errno("unlinking", path)};
    }

    Status do_rename(const std::string& source, const std::string& target) override {
        const bool done = ::rename(source.c_str(), target.c_str()) == 0;
        return done ? Status{} : Status{fail_errno("renaming", source)};
    }

    Result<std::vector<std::string>> do_list(const std::string& folder) override {
        const std::unique_ptr<DIR, int (*)(DIR*)> stream{::opendir(folder.c_str()), &::closedir};
        if (stream == nullptr) {
            return fail_errno("listing", folder);
        }
        std::vector<std::string> names;
        errno = 0;
        // readdir is safe: no other thread uses this stream.
        while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
            const std::string_view name{static_cast<const char*>(entry->d_name)};
            if (name != "." && name != "..") {
                names.emplace_back(name);
            }
            errno = 0;
        }
        if (errno != 0) {
            return fail_errno("listing", folder);
        }
        return names;
    }

    Status do_sync_folder(const std::string& folder) override {
        const UniqueFd fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (!fd.valid() || uninterrupted([&] { return ::fsync(fd.get()); }) != 0) {
            return fail_errno("syncing", folder);
        }
        return {};
    }

    Result<DeviceSpace> do_space(const std::string& path) override {
        struct statvfs about {};

        if (uninterrupted([&] { return ::statvfs(path.c_str(), &about); }) != 0) {
            return fail_errno("asking for free space of", path);
        }
        const Bytes block{about.f_frsize};
        return DeviceSpace{block * about.f_blocks, block * about.f_bavail};
    }

    Result<std::unique_ptr<DeviceLock>> do_try_lock(const std::string& path) override {
        while (true) {
            UniqueFd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode)};
            if (!fd.valid()) {
                return fail_errno("opening", path);
            }
            if (uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
                if (errno == EWOULDBLOCK) {
                    return std::unique_ptr<DeviceLock>{};
                }
                return fail_errno("locking", path);
            }

            // If the file lost its name meanwhile, our lock does not exclude other processes: open
            // and lock the new file.
            struct stat ours {};

            struct stat named {};

            if (::fstat(fd.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
                ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
                return std::make_unique<PosixLock>(std::move(fd));
            }
        }
    }
};

}  // namespace

std::unique_ptr<Device> make_posix_device() {
    return std::make_unique<PosixDevice>();
}

}  // namespace stoker::sidecar
