#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"

// The interface to the disk. All files in node directories go through a Device: PosixDevice in
// production, tests/support/fault_device in tests. Public functions check, split and count; the
// protected do_* functions do the I/O, one system call at a time.
//
// Errors, the same for every call:
//   kNotFound           no such file
//   kAlreadyExists      create() of a name that is taken
//   kForbidden          permissions
//   kResourceExhausted  disk, disk quota or file descriptors are used up; stored data is unharmed
//   kUnavailable        I/O error, read-only file system, or another error that only an
//                       administrator can fix
namespace stoker::sidecar {

// Counters of one device since construction. Bytes of failed calls are not counted.
struct DeviceCounters {
    std::uint64_t reads = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t syncs = 0;
    std::uint64_t errors = 0;  // failed calls, except kNotFound and kAlreadyExists
    Duration write_blocked{};  // time that the disk blocked writers (blocked_time.h), summed
};

// Counters of one device and its files.
using DeviceTally = Guarded<DeviceCounters>;

// An open file. Thread-safe: calls take positions as arguments, and calls that do not overlap do
// not affect each other. The device must outlive it.
class DeviceFile {
public:
    using ConstBuffer = std::span<const std::byte>;
    static constexpr std::size_t kPartsMax = 4;

    DeviceFile(const DeviceFile&) = delete;
    DeviceFile& operator=(const DeviceFile&) = delete;
    virtual ~DeviceFile() = default;

    // Reads into `out` from `offset` on; the count is below out.size() only at the end of the file.
    Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out);

    // Writes the parts (at most kPartsMax) contiguously from `offset`, in one system call where
    // possible. After an error the file may hold any prefix. Visible to readers and maps at once;
    // durable only after sync().
    Status write(std::uint64_t offset, std::span<const ConstBuffer> parts);

    // Truncates the file to `size_bytes`. Touching the removed part of a map raises SIGBUS.
    Status truncate(std::uint64_t size_bytes);

    // Makes the file `size_bytes` long, zero-filled, with its blocks allocated: later writes
    // through a map cannot run out of disk.
    Status allocate(std::uint64_t size_bytes);

    // Syncs the file: on return all earlier writes are durable.
    Status sync();

    [[nodiscard]] Result<std::uint64_t> size_bytes();

    // Hints: read a range into the page cache, or drop it from there. They never fail and do not
    // wait for the disk.
    void will_need(std::uint64_t offset, std::uint64_t bytes);
    void wont_need(std::uint64_t offset, std::uint64_t bytes);

protected:
    explicit DeviceFile(DeviceTally& tally)
        : tally_(tally) {}

    virtual Result<std::size_t> do_read(std::uint64_t offset, std::span<std::byte> out) = 0;
    virtual Result<std::size_t> do_write(
        std::uint64_t offset, std::span<const ConstBuffer> parts) = 0;

    // Waits until no other thread writes the file, on file systems that would serialize writers
    // anyway; this wait does not count as the disk's time.
    virtual std::unique_lock<std::mutex> do_take_turn() { return {}; }

    // Whether a write may block the calling thread. If not, DeviceCounters::write_blocked skips the
    // file's writes, and measuring costs nothing.
    [[nodiscard]] virtual bool may_block() const { return true; }

    virtual Status do_truncate(std::uint64_t size_bytes) = 0;
    virtual Status do_allocate(std::uint64_t size_bytes) = 0;
    virtual Status do_sync() = 0;
    virtual Result<std::uint64_t> do_size_bytes() = 0;
    virtual void do_will_need(std::uint64_t offset, std::uint64_t bytes) = 0;
    virtual void do_wont_need(std::uint64_t offset, std::uint64_t bytes) = 0;

private:
    Result<std::size_t> timed_write(std::uint64_t offset, std::span<const ConstBuffer> parts);

    DeviceTally& tally_;
};

// A whole file mapped into memory, shared with all other mappings of it. The destructor unmaps it;
// the file may be unlinked before that.
class DeviceMapping {
public:
    DeviceMapping(const DeviceMapping&) = delete;
    DeviceMapping& operator=(const DeviceMapping&) = delete;
    virtual ~DeviceMapping() = default;

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

    // The bytes, for writing. Empty for a read-only mapping.
    [[nodiscard]] std::span<std::byte> writable_bytes() const {
        return {data_, writable_ ? size_bytes_ : 0};
    }

protected:
    DeviceMapping(std::byte* data, std::size_t size_bytes, bool writable)
        : data_(data),
          size_bytes_(size_bytes),
          writable_(writable) {}

private:
    std::byte* data_;
    std::size_t size_bytes_;
    bool writable_;
};

// A lock on a file, held until destruction or until the process ends.
class DeviceLock {
public:
    DeviceLock() = default;
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;
    virtual ~DeviceLock() = default;
};

struct DeviceSpace {
    Bytes total{};
    Bytes available{};  // for us, so without the file system's reserve for root
};

enum class MapMode : std::uint8_t { kRead, kReadWrite };

enum class Access : std::uint8_t { kEverybody, kOwner };

// Thread-safe. Paths are absolute. Files get mode 0644 and folders 0755 whatever the umask: the
// trainer that maps them may run as any user; the directory's mount controls access.
class Device {
public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    // Creates an empty file, open for reading and writing. kAlreadyExists: the name is taken.
    // kOwner: mode 0600.
    Result<std::unique_ptr<DeviceFile>> create(
        const std::string& path, Access access = Access::kEverybody);

    // Opens an existing file for reading, hints, sync() and (unless the file system is read-only)
    // writing.
    Result<std::unique_ptr<DeviceFile>> open(const std::string& path);

    // Maps a whole existing file that is not empty.
    Result<std::unique_ptr<DeviceMapping>> map(const std::string& path, MapMode mode);

    // Makes the folder and its missing parents; no error if it exists. kOwner: the folder itself
    // gets mode 0700, also if it exists and our user owns it.
    Status make_folder(const std::string& path, Access access = Access::kEverybody);

    // Removes the file's name. kNotFound: no such file. Open files and mappings of it stay valid.
    Status unlink(const std::string& path);

    // Renames a file; replaces `target` in the same step if it exists.
    Status rename(const std::string& source, const std::string& target);

    // Names in a folder, sorted, without "." and "..".
    Result<std::vector<std::string>> list(const std::string& folder);

    // Syncs the folder: on return, earlier creations, renames and unlinks in it are durable.
    Status sync_folder(const std::string& folder);

    // Returns the space of the file system that holds `path`.
    Result<DeviceSpace> space(const std::string& path);

    // Takes the exclusive lock on `path` without waiting; creates the file if missing. nullptr:
    // another owner holds the lock.
    Result<std::unique_ptr<DeviceLock>> try_lock(const std::string& path);

    [[nodiscard]] DeviceCounters counters() const { return *tally_.lock(); }

protected:
    [[nodiscard]] DeviceTally& tally() { return tally_; }

    virtual Result<std::unique_ptr<DeviceFile>> do_create(
        const std::string& path, Access access) = 0;
    virtual Result<std::unique_ptr<DeviceFile>> do_open(const std::string& path) = 0;
    virtual Result<std::unique_ptr<DeviceMapping>> do_map(
        const std::string& path, MapMode mode) = 0;
    virtual Status do_make_folder(const std::string& path, Access access) = 0;
    virtual Status do_unlink(const std::string& path) = 0;
    virtual Status do_rename(const std::string& source, const std::string& target) = 0;
    virtual Result<std::vector<std::string>> do_list(const std::string& folder) = 0;
    virtual Status do_sync_folder(const std::string& folder) = 0;
    virtual Result<DeviceSpace> do_space(const std::string& path) = 0;
    virtual Result<std::unique_ptr<DeviceLock>> do_try_lock(const std::string& path) = 0;

private:
    mutable DeviceTally tally_;
};

// Writes a temporary file beside the target and renames it, so that the name never shows a partial
// file. kPower: bytes and name survive a power cut; kProcess: only the end of the process.
enum class Durability : std::uint8_t { kProcess, kPower };
Status replace_file(
    Device& device,
    const std::string& path,
    std::span<const std::byte> bytes,
    Durability durability,
    Access access = Access::kEverybody);

// Reads a whole file of at most `bytes_max` bytes (kCorruption if longer).
Result<std::vector<std::byte>> read_file(
    Device& device, const std::string& path, std::uint64_t bytes_max);

// The path of `name` in `folder`.
std::string join_path(std::string_view folder, std::string_view name);

// The folder of a path.
std::string parent_path(std::string_view path);

}  // namespace stoker::sidecar
