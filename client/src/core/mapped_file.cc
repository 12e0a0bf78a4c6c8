#include "client/src/core/mapped_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace stoker::client {

Error system_error(int error_number, const std::string& context) {
    ErrorCode code = ErrorCode::kUnavailable;
    if (error_number == ENOENT || error_number == ENOTDIR) {
        code = ErrorCode::kNotFound;
    } else if (error_number == EACCES || error_number == EPERM) {
        code = ErrorCode::kForbidden;
    } else if (error_number == ENOMEM || error_number == EMFILE || error_number == ENFILE) {
        code = ErrorCode::kResourceExhausted;
    }
    return {code, fmt::format("{}: {}", context, std::generic_category().message(error_number))};
}

Result<MappedFile> MappedFile::map(int fd, std::uint64_t length_bytes, const std::string& name) {
    MappedFile file;
    if (length_bytes == 0) {
        return file;
    }
    void* data = ::mmap(nullptr, length_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
        return fail(system_error(errno, fmt::format("mapping {}", name)));
    }
    file.data_ = static_cast<const std::byte*>(data);
    file.length_bytes_ = length_bytes;
    return file;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};

    struct stat status {};

    if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
        return fail(system_error(errno, fmt::format("opening {}", path)));
    }
    STOKER_TRY(MappedFile file, map(fd.get(), static_cast<std::uint64_t>(status.st_size), path));
    file.device_ = status.st_dev;
    file.inode_ = status.st_ino;
    return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      length_bytes_(std::exchange(other.length_bytes_, 0)),
      device_(std::exchange(other.device_, 0)),
      inode_(std::exchange(other.inode_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(length_bytes_, other.length_bytes_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) {
        ::munmap(const_cast<std::byte*>(data_), length_bytes_);
    }
}

bool MappedFile::is_same_file_as(const std::string& path) const {
    struct stat status {};

    return ::stat(path.c_str(), &status) == 0 && status.st_dev == device_ &&
           status.st_ino == inode_;
}

bool MappedFile::is_readable(std::span<const std::byte> bytes) {
    static const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t into_page =
        reinterpret_cast<std::uintptr_t>(bytes.data()) & (page_bytes - 1);
    auto* begin = const_cast<std::byte*>(bytes.data() - into_page);
    if (::madvise(begin, bytes.size() + into_page, MADV_POPULATE_READ) == 0) {
        return true;
    }
    return errno != EFAULT && errno != EHWPOISON && errno != EIO;
}

}  // namespace stoker::client
