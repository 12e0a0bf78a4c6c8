#include "tests/world/process_device.h"

#include <algorithm>
#include <utility>

namespace stoker::world {

using sidecar::DeviceFile;
using sidecar::DeviceLock;
using sidecar::DeviceMapping;

namespace {

tl::unexpected<Error> dead() {
    return fail(ErrorCode::kUnavailable, "the process is dead");
}

// A map that both the process and the device keep: restore_maps() needs it after the process.
class SharedMapping final : public DeviceMapping {
public:
    explicit SharedMapping(std::shared_ptr<DeviceMapping> map)
        : DeviceMapping(
              const_cast<std::byte*>(map->bytes().data()),
              map->bytes().size(),
              !map->writable_bytes().empty()),
          map_(std::move(map)) {}

private:
    std::shared_ptr<DeviceMapping> map_;
};

}  // namespace

class ProcessDevice::File final : public DeviceFile {
public:
    File(ProcessDevice& device, std::unique_ptr<DeviceFile> file, std::string path)
        : DeviceFile(device.tally()),
          device_(device),
          file_(std::move(file)),
          path_(std::move(path)) {}

protected:
    Result<std::size_t> do_read(std::uint64_t offset, std::span<std::byte> out) override {
        STOKER_TRY_VOID(device_.check());
        return file_->read(offset, out);
    }

    Result<std::size_t> do_write(
        std::uint64_t offset, std::span<const ConstBuffer> parts) override {
        const bool was_dead = device_.is_dead_;
        if (const auto checked = device_.check_change(path_); !checked) {
            if (!was_dead && device_.is_dead_ && !parts.empty()) {
                // Torn: the kernel took the first part before the process died.
                [[maybe_unused]] const auto torn = file_->write(offset, parts.first(1));
            }
            return fail(checked.error());
        }
        std::size_t bytes = 0;
        for (const ConstBuffer part : parts) {
            bytes += part.size();
        }
        STOKER_TRY_VOID(file_->write(offset, parts));
        return bytes;
    }

    [[nodiscard]] bool may_block() const override { return false; }

    Status do_truncate(std::uint64_t size_bytes) override {
        STOKER_TRY_VOID(device_.check_change(path_));
        return file_->truncate(size_bytes);
    }

    Status do_allocate(std::uint64_t size_bytes) override {
        STOKER_TRY_VOID(device_.check_change(path_));
        return file_->allocate(size_bytes);
    }

    Status do_sync() override {
        STOKER_TRY_VOID(device_.check());
        return file_->sync();
    }

    Result<std::uint64_t> do_size_bytes() override {
        STOKER_TRY_VOID(device_.check());
        return file_->size_bytes();
    }

    void do_will_need(std::uint64_t offset, std::uint64_t bytes) override {
        file_->will_need(offset, bytes);
    }

    void do_wont_need(std::uint64_t offset, std::uint64_t bytes) override {
        file_->wont_need(offset, bytes);
    }

private:
    ProcessDevice& device_;
    std::unique_ptr<DeviceFile> file_;
    std::string path_;
};

class ProcessDevice::Lock final : public DeviceLock {
public:
    Lock(ProcessDevice& device, std::unique_ptr<DeviceLock> lock)
        : device_(device),
          lock_(std::move(lock)) {
        ++device_.locks_;
    }

    ~Lock() override { --device_.locks_; }

private:
    ProcessDevice& device_;
    std::unique_ptr<DeviceLock> lock_;
};

ProcessDevice::ProcessDevice(test::FaultDevice& disk, Callbacks callbacks)
    : disk_(disk),
      callbacks_(std::move(callbacks)) {}

ProcessDevice::~ProcessDevice() = default;

void ProcessDevice::die() {
    is_dead_ = true;
    for (const auto& weak : maps_) {
        if (auto map = weak.lock()) {
            std::vector<std::byte> bytes{map->bytes().begin(), map->bytes().end()};
            maps_at_death_.emplace_back(std::move(map), std::move(bytes));
        }
    }
}

void ProcessDevice::restore_maps() {
    for (const auto& [map, bytes] : maps_at_death_) {
        std::ranges::copy(bytes, map->writable_bytes().begin());
    }
    maps_at_death_.clear();
}

Status ProcessDevice::check() const {
    return is_dead_ ? Status{dead()} : Status{};
}

Status ProcessDevice::check_change(const std::string& path) {
    STOKER_TRY_VOID(check());
    if (locks_ == 0) {
        callbacks_.unlocked_write(path);
    }
    if (changes_left_ && (*changes_left_)-- == 0) {
        die();
        callbacks_.died();
        return dead();
    }
    return {};
}

Result<std::unique_ptr<DeviceFile>> ProcessDevice::do_create(
    const std::string& path, sidecar::Access access) {
    STOKER_TRY_VOID(check_change(path));
    STOKER_TRY(auto file, disk_.create(path, access));
    return std::make_unique<File>(*this, std::move(file), path);
}

Result<std::unique_ptr<DeviceFile>> ProcessDevice::do_open(const std::string& path) {
    STOKER_TRY_VOID(check());
    STOKER_TRY(auto file, disk_.open(path));
    return std::make_unique<File>(*this, std::move(file), path);
}

Result<std::unique_ptr<DeviceMapping>> ProcessDevice::do_map(
    const std::string& path, sidecar::MapMode mode) {
    STOKER_TRY_VOID(check());
    STOKER_TRY(std::shared_ptr<DeviceMapping> map, disk_.map(path, mode));
    if (mode == sidecar::MapMode::kReadWrite) {
        if (locks_ == 0) {
            callbacks_.unlocked_write(path);
        }
        std::erase_if(maps_, [](const auto& weak) { return weak.expired(); });
        maps_.push_back(map);
    }
    return std::make_unique<SharedMapping>(std::move(map));
}

// Allowed without the lock: the folders hold the lock's file.
Status ProcessDevice::do_make_folder(const std::string& path, sidecar::Access access) {
    STOKER_TRY_VOID(check());
    return disk_.make_folder(path, access);
}

Status ProcessDevice::do_unlink(const std::string& path) {
    STOKER_TRY_VOID(check_change(path));
    return disk_.unlink(path);
}

Status ProcessDevice::do_rename(const std::string& source, const std::string& target) {
    STOKER_TRY_VOID(check_change(target));
    return disk_.rename(source, target);
}

Result<std::vector<std::string>> ProcessDevice::do_list(const std::string& folder) {
    STOKER_TRY_VOID(check());
    return disk_.list(folder);
}

Status ProcessDevice::do_sync_folder(const std::string& folder) {
    STOKER_TRY_VOID(check());
    return disk_.sync_folder(folder);
}

Result<sidecar::DeviceSpace> ProcessDevice::do_space(const std::string& path) {
    STOKER_TRY_VOID(check());
    return disk_.space(path);
}

Result<std::unique_ptr<DeviceLock>> ProcessDevice::do_try_lock(const std::string& path) {
    STOKER_TRY_VOID(check());
    STOKER_TRY(auto lock, disk_.try_lock(path));
    if (lock == nullptr) {
        return std::unique_ptr<DeviceLock>{};
    }
    return std::make_unique<Lock>(*this, std::move(lock));
}

}  // namespace stoker::world
