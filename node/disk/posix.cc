#include "node/disk/posix.h"

#include <array>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stoker::node {

namespace {

constexpr unsigned kFileMode = 0644;
constexpr std::size_t kSmallFileBytes = 4096;

struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};

EntryKind kind_of(int folder, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) {
        return entry.d_type == DT_DIR   ? EntryKind::kFolder
               : entry.d_type == DT_REG ? EntryKind::kFile
                                        : EntryKind::kOther;
    }

    struct stat status {};

    if (::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return EntryKind::kOther;
    }
    return S_ISDIR(status.st_mode)   ? EntryKind::kFolder
           : S_ISREG(status.st_mode) ? EntryKind::kFile
                                     : EntryKind::kOther;
}

}  // namespace

Result<UniqueFd> open_host_folder(int root, const std::string& path) {
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    UniqueFd opened{
        static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)))};
    if (!opened.valid()) {
        return fail_errno("opening", path);
    }
    return opened;
}

Result<UniqueFd> open_folder(int folder, const std::string& name) {
    UniqueFd opened{
        ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!opened.valid()) {
        return fail_errno("opening", name);
    }
    return opened;
}

Result<UniqueFd> make_folder(int folder, const std::string& name, unsigned mode) {
    if (::mkdirat(folder, name.c_str(), mode) != 0 && errno != EEXIST) {
        return fail_errno("making", name);
    }
    return open_folder(folder, name);
}

Status each_entry(
    int folder, const std::function<bool(const std::string& name, EntryKind kind)>& visit) {
    UniqueFd own{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!own.valid()) {
        return fail_errno("listing", "a folder");
    }
    const std::unique_ptr<DIR, CloseFolder> stream{::fdopendir(own.get())};
    if (stream == nullptr) {
        return fail_errno("listing", "a folder");
    }
    const int stream_fd = own.release();
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string name = entry->d_name;
        if (name != "." && name != ".." && !visit(name, kind_of(stream_fd, *entry))) {
            return {};
        }
        errno = 0;
    }
    if (errno != 0) {
        return fail_errno("listing", "a folder");
    }
    return {};
}

Result<std::optional<std::string>> read_small_file(int folder, const std::string& name) {
    // O_NONBLOCK: opening a named pipe must not block.
    const UniqueFd file{
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    if (!file.valid()) {
        if (errno == ENOENT) {
            return std::optional<std::string>{};
        }
        return fail_errno("opening", name);
    }
    std::array<char, kSmallFileBytes> buffer{};
    const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
    if (size < 0) {
        return fail_errno("reading", name);
    }
    return std::optional{std::string{buffer.data(), static_cast<std::size_t>(size)}};
}

Status write_small_file(int folder, const std::string& name, std::string_view text) {
    const std::string beside = name + ".new";
    ::unlinkat(folder, beside.c_str(), 0);
    const UniqueFd file{::openat(
        folder, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode)};
    if (!file.valid() ||
        ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return fail_errno("writing", beside);
    }
    if (::fsync(file.get()) != 0 || ::renameat(folder, beside.c_str(), folder, name.c_str()) != 0 ||
        ::fsync(folder) != 0) {
        return fail_errno("writing", name);
    }
    return {};
}

}  // namespace stoker::node
