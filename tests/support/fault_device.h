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

// A disk in memory that lies like real ones. It knows what was synced, so a power cut can lose the
// rest, block by block and name by name; it can fill up, turn read-only, fail, stop in the middle
// of a write, and rot. Thread-safe.
//
// Pessimistic on purpose: syncing a file does not make its name durable, only sync_folder() of its
// folder does; of the names changed since, a power cut keeps a random first part per folder, of
// unsynced bytes any choice of 512-byte blocks.
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

    // --- what goes wrong ---

    // The power fails and comes back: unsynced state is lost as described above. Files, maps and
    // locks from before are dead: their calls fail, their memory is nobody's.
    void power_cut();

    // After so many more changing calls (create, write, truncate, allocate, sync, unlink, rename)
    // the process counts as killed: the next write stores a random first part, everything fails
    // from there on until revive(). Nothing stored is lost.
    void kill_after(std::uint64_t changes);
    [[nodiscard]] bool is_killed() const;
    void revive();

    // Bytes that all files together may have; a write beyond stores what fits and fails with
    // kResourceExhausted.
    void set_capacity(Bytes capacity);

    // Every changing call fails with kUnavailable, as after a remount for errors.
    void set_read_only(bool read_only);

    // Calls of this kind fail with kUnavailable (I/O error) from now on, or no more.
    void set_broken(Operation operation, bool broken);

    // Changes one bit of a file, in memory and on the plate.
    void flip_bit(const std::string& path, std::uint64_t byte_offset, unsigned bit);

    // Cuts a file off, in memory and on the plate.
    void cut(const std::string& path, std::uint64_t size_bytes);

    // Called before every operation, without a lock held: count it, or make it wait (a slow disk).
    // The path is the file's name when it was opened.
    void set_hook(std::function<void(Operation, const std::string& path)> hook);

    // --- what is there, as processes see it ---

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

    // What a name stands for. `durable` is what a power cut is sure to leave.
    struct Inode {
        std::vector<std::byte> live;
        std::vector<std::byte> durable;
        bool mapped = false;  // the live bytes may not move any more
    };

    using InodePtr = std::shared_ptr<Inode>;
    using Names = std::map<std::string, InodePtr>;

    // A change of a name that is not durable yet; no inode: the name goes away.
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
    std::map<std::string, std::uint64_t> locks_;  // held, by the generation they were taken in
    std::map<Operation, bool> broken_;
    std::function<void(Operation, const std::string&)> hook_;
    std::uint64_t generation_ = 0;  // power cuts so far
    std::uint64_t changes_left_ = std::numeric_limits<std::uint64_t>::max();
    bool killed_ = false;
    bool read_only_ = false;
    Bytes capacity_ = gib(1);
};

}  // namespace stoker::test
