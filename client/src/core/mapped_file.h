#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/result.h"

namespace stoker::client {

// A read-only shared mapping of the start of a file, unmapped on destruction. It holds no file
// descriptor and keeps the bytes reachable after the file was unlinked. Move-only; immutable, so
// any thread may read.
//
// A mapping may be longer than its file: reading beyond the file's end raises SIGBUS.
class MappedFile {
public:
    MappedFile() = default;

    // Maps `length_bytes` of an open file; the descriptor may be closed afterwards.
    // kResourceExhausted: no room for one more map. kUnavailable: the file system cannot map.
    static Result<MappedFile> map(int fd, std::uint64_t length_bytes, const std::string& name);

    // Opens a file and maps its current length. kNotFound, kForbidden, kUnavailable.
    static Result<MappedFile> open(const std::string& path);

    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, length_bytes_}; }

    // Whether `path` names the file that open() mapped, by device and inode; false after map().
    [[nodiscard]] bool is_same_file_as(const std::string& path) const;

    // Asks the kernel to read the pages in now. False: it cannot (truncated file, or disk failure),
    // so touching them would raise SIGBUS. Kernels before 5.14 cannot check: always true.
    [[nodiscard]] static bool is_readable(std::span<const std::byte> bytes);

    // Starts reading exactly these pages and returns, so that many records are read at once. Page
    // faults alone would read one record at a time, and pages around it that nobody needs.
    static void read_ahead(std::span<const std::byte> bytes);

private:
    const std::byte* data_ = nullptr;
    std::uint64_t length_bytes_ = 0;
    std::uint64_t device_ = 0;
    std::uint64_t inode_ = 0;
};

// Reading mapped files without crashing. A page that lies beyond its truncated file, or that the
// disk cannot read, raises SIGBUS on access; copy_guarded() and load_guarded() return nullopt
// instead. Thread-safe; the caller guarantees that the addresses are mapped.
//
// These functions need our SIGBUS handler, which passes every other SIGBUS on to the previous
// handler or the default action. If another handler was installed later, install_bus_guard() puts
// ours back on top, and the other one behind it.

// Installs our handler, or puts it back on top; only one system call if it is on top already.
void install_bus_guard();

// Copies the first to.size() bytes of `from`, and returns crc32c() of all bytes of `from` after the
// first `skipped`. If all bytes are copied, the checksum is that of the copy, which no other
// process can change. nullopt: some of these bytes cannot be read.
[[nodiscard]] std::optional<std::uint32_t> copy_guarded(
    std::span<const std::byte> from, std::span<std::byte> to, std::size_t skipped);

// Loads one word with acquire order.
[[nodiscard]] std::optional<std::uint64_t> load_guarded(const std::uint64_t* word);

// The Error of a failed system call: "opening <name>: <strerror>", with the code that matches
// errno.
Error system_error(int error_number, const std::string& context);

}  // namespace stoker::client
