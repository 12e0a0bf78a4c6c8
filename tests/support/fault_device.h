#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/prng.h"
#include "sidecar/device/device.h"

namespace stoker::test {

// An in-memory disk with fault injection. It records what was synced, so a power cut can lose the
// rest, block by block and name by name; it can fill up, turn read-only, fail, stop in the middle
// of a write, and flip bits. Thread-safe.
//
// Pessimistic on purpose: only sync_folder() makes a file's name durable, not syncing the file. A
// power cut keeps a random prefix of each folder's unsynced name changes, and any subset of the
// unsynced 512-byte blocks.
class FaultDevice final : public sidecar::Device {
public:
    enum class Operation : std::uint8_t {
        kCreate,
        kOpen,
        kRead,
        kWrite,
        kTruncate,
        kAllocate,
        kSync,
        kMap,
        kUnlink,
        kRename,
        kList,
        kSpace
    };

    explicit FaultDevice(std::uint64_t seed);
    ~FaultDevice() override;

    // --- faults ---

    // Cuts the power and restores it: loses unsynced state as described above. Calls on older
    // files, maps and locks fail; their memory no longer belongs to a file.
    void power_cut();

    // Makes all bytes and names durable, as the machine does when it shuts down.
    void sync_all();

    // After `changes` more changing calls (create, write, truncate, allocate, sync, unlink, rename) the
    // process counts as killed: the next write stores a random prefix, and all calls fail from there
    // on until revive(). Loses nothing that is stored.
    void kill_after(std::uint64_t changes);
    [[nodiscard]] bool is_killed() const;
    void revive();

    // Capacity of all files together; a write beyond it stores what fits and fails with
    // kResourceExhausted.
    void set_capacity(Bytes capacity);

    // Every changing call fails with kUnavailable, as after a read-only remount.
    void set_read_only(bool read_only);

    // Calls of this kind fail with kUnavailable (I/O error) from now on, or stop failing.
    void set_broken(Operation operation, bool broken);

    // Flips one bit of a file, in memory and in the durable copy.
    void flip_bit(const std::string& path, std::uint64_t byte_offset, unsigned bit);

    // Truncates a file, in memory and in the durable copy.
    void cut(const std::string& path, std::uint64_t size_bytes);

    // Called before every operation, without a lock held; may count it or delay it (a slow disk).
    // The path is the file's name when it was opened.
    void set_hook(std::function<void(Operation, const std::string& path)> hook);

    // --- content, as processes see it ---

    [[nodiscard]] std::vector<std::string> paths() const;
    [[nodiscard]] std::optional<std::vector<std::byte>> content(const std::string& path) const;
    void put(const std::string& path, std::vector<std::byte> content);

protected:
    Result<std::unique_ptr<sidecar::DeviceFile>> do_create(
        const std::string& path, sidecar::Access access) override;
    Result<std::unique_ptr<sidecar::DeviceFile>> do_open(const std::string& path) override;
    Result<std::unique_ptr<sidecar::DeviceMapping>> do_map(
        const std::string& path, sidecar::MapMode mode) override;
    Status do_make_folder(const std::string& path, sidecar::Access access) override;
    Status do_unlink(const std::string& path) override;
    Status do_rename(const std::string& source, const std::string& target) override;
    Result<std::vector<std::string>> do_list(const std::string& folder) override;
    Status do_sync_folder(const std::string& folder) override;
    Result<sidecar::DeviceSpace> do_space(const std::string& path) override;
    Result<std::unique_ptr<sidecar::DeviceLock>> do_try_lock(const std::string& path) override;

private:
    class File;
    class Mapping;
    class Lock;

    // A file's content. `durable` is what surely survives a power cut.
    struct Inode {
        std::vector<std::byte> live;
        std::vector<std::byte> durable;
        bool mapped = false;  // the live bytes must not move
    };

    using InodePtr = std::shared_ptr<Inode>;
    using Names = std::map<std::string, InodePtr>;

    // A name change that is not durable yet; no inode: a removal.
    struct NameChange {
        std::string path;
        InodePtr inode;
    };

    void enter(Operation operation, const std::string& path);
    Status enter_locked(Operation operation);
    void change_name(const std::string& path, InodePtr inode);
    Result<InodePtr> find(const std::string& path) const;
    Status resize(Inode& inode, std::uint64_t size_bytes);
    [[nodiscard]] std::uint64_t used_bytes() const;
    void lose_unsynced_bytes(Inode& inode);
    void lose_unsynced_names();

    mutable std::mutex mutex_;
    Prng luck_;
    Names live_names_;
    Names durable_names_;
    std::map<std::string, std::vector<std::vector<NameChange>>> pending_names_;  // by folder
    std::map<std::string, std::uint64_t> locks_;  // held locks, with the generation of each
    std::map<Operation, bool> broken_;
    std::function<void(Operation, const std::string&)> hook_;
    std::uint64_t generation_ = 0;  // power cuts so far
    std::uint64_t changes_left_ = std::numeric_limits<std::uint64_t>::max();
    bool killed_ = false;
    bool read_only_ = false;
    Bytes capacity_ = gib(1);
};

}  // namespace stoker::test
