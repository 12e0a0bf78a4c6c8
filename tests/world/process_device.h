#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/device/device.h"
#include "tests/support/fault_device.h"

namespace stoker::world {

// A process's view of the node's disk. After die() every call fails and nothing reaches the disk,
// not even through writable maps. Not thread-safe.
class ProcessDevice final : public sidecar::Device {
public:
    struct Callbacks {
        // Called when a process without the lock makes a changing call; `what` names the file.
        std::function<void(const std::string& what)> unlocked_write;
        std::function<void()> died;  // called inside a call after die_after(); only set a flag
    };

    // `disk` must outlive it.
    ProcessDevice(test::FaultDevice& disk, Callbacks callbacks);
    ~ProcessDevice() override;

    // From now on nothing reaches the disk.
    void die();

    // Lets `changes` more changing calls pass and dies in the next one; if that is a write, a part
    // of its bytes is stored.
    void die_after(std::uint64_t changes) { changes_left_ = changes; }

    [[nodiscard]] bool is_dead() const { return is_dead_; }

    [[nodiscard]] bool holds_lock() const { return locks_ > 0; }

    // Undoes what was written to maps after die(). Call it when the process's objects are gone.
    void restore_maps();

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
    class Lock;

    [[nodiscard]] Status check() const;
    [[nodiscard]] Status check_change(const std::string& path);

    test::FaultDevice& disk_;
    Callbacks callbacks_;
    bool is_dead_ = false;
    std::size_t locks_ = 0;
    std::optional<std::uint64_t> changes_left_;
    std::vector<std::weak_ptr<sidecar::DeviceMapping>> maps_;
    std::vector<std::pair<std::shared_ptr<sidecar::DeviceMapping>, std::vector<std::byte>>>
        maps_at_death_;
};

}  // namespace stoker::world
