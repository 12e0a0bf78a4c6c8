#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/result.h"

namespace stoker::client {

// A read-only shared mapping of the start of a file, unmapped on destruction. It holds no file
// descriptor and keeps the bytes reachable after the file was unlinked. Move-only; immutable, so
// any thread may read.
//
// A mapping may be longer than its file: whoever reads must know that the bytes are there (SIGBUS
// otherwise).
class MappedFile {
public:
    MappedFile() = default;

    // Maps `length_bytes` of an open file; the descriptor may be closed afterwards.
    // kResourceExhausted: no room for one more map. kUnavailable: the file system cannot map.
    static Result<MappedFile> map(int fd, std::uint64_t length_bytes, const std::string& name);

    // Opens and maps the whole of a file as it is now. kNotFound, kForbidden, kUnavailable.
    static Result<MappedFile> open(const std::string& path);

    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, length_bytes_}; }

    // Which file it is: device and inode of open(), zero for map().
    [[nodiscard]] bool is_same_file_as(const std::string& path) const;

    // Asks the kernel to bring the pages in now. false: it cannot (the file ends before, or the
    // disk does not give them), so that a touch would be SIGBUS. Kernels before 5.14 cannot tell
    // and give true.
    [[nodiscard]] static bool is_readable(std::span<const std::byte> bytes);

private:
    const std::byte* data_ = nullptr;
    std::uint64_t length_bytes_ = 0;
    std::uint64_t device_ = 0;
    std::uint64_t inode_ = 0;
};

// The Error for a failed system call of ours: "opening <name>: <strerror>", with the code that fits
// errno.
Error system_error(int error_number, const std::string& context);

}  // namespace stoker::client
