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

// The interface to the disk. Everything that the sidecar keeps in node directories goes through a
// Device: PosixDevice in production, tests/support/fault_device in tests. Public functions check,
// split and count; the protected do_* of an implementation do the I/O, one system call's worth at a
// time.
//
// Errors, the same for every call:
//   kNotFound           no such file
//   kAlreadyExists      create() of a name that is taken
//   kForbidden          permissions
//   kResourceExhausted  disk, disk quota or file descriptors are used up; nothing that was stored
//                       before is hurt
//   kUnavailable        I/O error, read-only file system, or anything else that only the machine's
//                       owner can mend
namespace stoker::sidecar {

// What went through one device since it was made. Bytes that a failed call moved are not counted.
struct DeviceCounters {
    std::uint64_t reads = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t writes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t syncs = 0;
    std::uint64_t errors = 0;  // failed calls, kNotFound and kAlreadyExists left out
    Duration write_blocked{};  // time that writers stood still in the disk (blocked_time.h), summed
};

// Counts for one device and its files.
using DeviceTally = Guarded<DeviceCounters>;

// An open file. Thread-safe: positions are arguments, and calls that do not overlap do not disturb
// each other. The device must outlive it.
class DeviceFile {
public:
    using ConstBuffer = std::span<const std::byte>;
    static constexpr std::size_t kPartsMax = 4;

    DeviceFile(const DeviceFile&) = delete;
    DeviceFile& operator=(const DeviceFile&) = delete;
    virtual ~DeviceFile() = default;

    // Fills `out` from `offset`; the count is less than out.size() only at the end of the file.
    Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out);

    // Writes the parts (at most kPartsMax) one behind the other from `offset`, in one system call
    // where possible. After an error any prefix may be in the file. Visible to readers and maps at
    // once, durable only after sync().
    Status write(std::uint64_t offset, std::span<const ConstBuffer> parts);

    // Cuts the file to `size_bytes`. A process that maps the cut part gets SIGBUS on touching it.
    Status truncate(std::uint64_t size_bytes);

    // Makes the file `size_bytes` long, zero-filled, with its blocks allocated: later writes
    // through a map cannot run out of disk.
    Status allocate(std::uint64_t size_bytes);

    // Everything written before is durable when this returns.
    Status sync();

    [[nodiscard]] Result<std::uint64_t> size_bytes();

    // Hints: start reading a range into the page cache; let it go again. They never fail and do not
    // wait for the disk.
    void will_need(std::uint64_t offset, std::uint64_t bytes);
    void wont_need(std::uint64_t offset, std::uint64_t bytes);

protected:
    explicit DeviceFile(DeviceTally& tally)
        : tally_(tally) {}

    virtual Result<std::size_t> do_read(std::uint64_t offset, std::span<std::byte> out) = 0;
    virtual Result<std::size_t> do_write(
        std::uint64_t offset, std::span<const ConstBuffer> parts) = 0;

    // Waits until nobody else writes to the file, where the file system would make us wait for that
    // anyway: here it is not taken for the disk's time.
    virtual std::unique_lock<std::mutex> do_take_turn() { return {}; }

    virtual Status do_truncate(std::uint64_t size_bytes) = 0;
    virtual Status do_allocate(std::uint64_t size_bytes) = 0;
    virtual Status do_sync() = 0;
    virtual Result<std::uint64_t> do_size_bytes() = 0;
    virtual void do_will_need(std::uint64_t offset, std::uint64_t bytes) = 0;
    virtual void do_wont_need(std::uint64_t offset, std::uint64_t bytes) = 0;

private:
    DeviceTally& tally_;
};

// A whole file in memory, shared with everybody else who maps it. Unmapped by the destructor; the
// file may be unlinked before.
class DeviceMapping {
public:
    DeviceMapping(const DeviceMapping&) = delete;
    DeviceMapping& operator=(const DeviceMapping&) = delete;
    virtual ~DeviceMapping() = default;

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

    // Empty for a read-only mapping.
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

// Held until destroyed, or until the process dies, however it dies.
class DeviceLock {
public:
    DeviceLock() = default;
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;
    virtual ~DeviceLock() = default;
};

struct DeviceSpace {
    Bytes total{};
    Bytes available{};  // to us: what the file system keeps for root is not ours
};

enum class MapMode : std::uint8_t { kRead, kReadWrite };

enum class Access : std::uint8_t { kEverybody, kOwner };

// Thread-safe. Paths are absolute. Files are world-readable (0644) and folders 0755 whatever the
// umask: the trainer that maps them may run as any user, and the directory as a whole is guarded by
// who mounts it.
class Device {
public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    // A new, empty file, readable and writable by us. kAlreadyExists when the name is taken.
    // kOwner: mode 0600.
    Result<std::unique_ptr<DeviceFile>> create(
        const std::string& path, Access access = Access::kEverybody);

    // An existing file, for reading, hints, sync() and (unless the file system is read-only)
    // writing.
    Result<std::unique_ptr<DeviceFile>> open(const std::string& path);

    // The whole of an existing file that is not empty.
    Result<std::unique_ptr<DeviceMapping>> map(const std::string& path, MapMode mode);

    // Makes the folder and its missing parents; that it exists already is no error. kOwner: the
    // folder itself gets mode 0700, also where it exists and belongs to our user.
    Status make_folder(const std::string& path, Access access = Access::kEverybody);

    // kNotFound when there is none. Open files and maps of it stay good.
    Status unlink(const std::string& path);

    // Replaces `target` in one step, if it exists.
    Status rename(const std::string& source, const std::string& target);

    // Names in a folder, sorted, without "." and "..".
    Result<std::vector<std::string>> list(const std::string& folder);

    // Names that were created, renamed or unlinked in the folder before are durable when this
    // returns.
    Status sync_folder(const std::string& folder);

    // Space of the file system that holds `path`.
    Result<DeviceSpace> space(const std::string& path);

    // Takes the exclusive lock on `path`, made if missing, without waiting. A null pointer:
    // somebody else has it.
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

// Writes a file so that its name never shows half of it: a temporary name beside it, then rename.
// kPower: both the bytes and the name survive a power cut; kProcess: only the end of the process.
enum class Durability : std::uint8_t { kProcess, kPower };
Status replace_file(
    Device& device,
    const std::string& path,
    std::span<const std::byte> bytes,
    Durability durability,
    Access access = Access::kEverybody);

// The whole of a file, which may be at most `bytes_max` long (kCorruption otherwise).
Result<std::vector<std::byte>> read_file(
    Device& device, const std::string& path, std::uint64_t bytes_max);

// The path of `name` in `folder`.
std::string join_path(std::string_view folder, std::string_view name);

// The folder part of a path.
std::string parent_path(std::string_view path);

}  // namespace stoker::sidecar
