#include "tests/support/fault_device.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"

namespace stoker::test {

using sidecar::DeviceFile;
using sidecar::DeviceLock;
using sidecar::DeviceMapping;
using sidecar::parent_path;

namespace {

bool changes(FaultDevice::Operation operation) {
    using Operation = FaultDevice::Operation;
    switch (operation) {
        case Operation::kCreate:
        case Operation::kWrite:
        case Operation::kTruncate:
        case Operation::kAllocate:
        case Operation::kSync:
        case Operation::kUnlink:
        case Operation::kRename:
            return true;
        default:
            return false;
    }
}

tl::unexpected<Error> io_error(const char* text) {
    return fail(ErrorCode::kUnavailable, text);
}

}  // namespace

class FaultDevice::File final : public DeviceFile {
public:
    File(FaultDevice& device, InodePtr inode, std::string path)
        : DeviceFile(device.tally()),
          device_(device),
          inode_(std::move(inode)),
          path_(std::move(path)),
          generation_(device.generation_) {}

protected:
    Result<std::size_t> do_read(std::uint64_t offset, std::span<std::byte> out) override {
        device_.enter(Operation::kRead, path_);
        const std::lock_guard lock{device_.mutex_};
        STOKER_TRY_VOID(begin(Operation::kRead));
        const std::uint64_t size = inode_->live.size();
        if (offset >= size) {
            return 0;
        }
        const std::size_t count = std::min<std::size_t>(out.size(), size - offset);
        std::copy_n(inode_->live.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
        return count;
    }

    Result<std::size_t> do_write(
        std::uint64_t offset, std::span<const ConstBuffer> parts) override {
        device_.enter(Operation::kWrite, path_);
        std::vector<std::byte> bytes;
        for (const ConstBuffer part : parts) {
            bytes.insert(bytes.end(), part.begin(), part.end());
        }
        const std::lock_guard lock{device_.mutex_};
        const bool was_killed = device_.killed_;
        const Status begun = begin(Operation::kWrite);
        if (!begun.has_value()) {
            if (device_.killed_ && !was_killed) {  // this write reached the kill point
                bytes.resize(device_.luck_.below(bytes.size() + 1));
                static_cast<void>(store(offset, bytes));
            }
            return fail(begun.error());
        }
        return store(offset, bytes);
    }

    // Only the hook can block a call.
    [[nodiscard]] bool may_block() const override {
        const std::lock_guard lock{device_.mutex_};
        return device_.hook_ != nullptr;
    }

    Status do_truncate(std::uint64_t size_bytes) override {
        device_.enter(Operation::kTruncate, path_);
        const std::lock_guard lock{device_.mutex_};
        STOKER_TRY_VOID(begin(Operation::kTruncate));
        return device_.resize(*inode_, size_bytes);
    }

    Status do_allocate(std::uint64_t size_bytes) override {
        device_.enter(Operation::kAllocate, path_);
        const std::lock_guard lock{device_.mutex_};
        STOKER_TRY_VOID(begin(Operation::kAllocate));
        return device_.resize(*inode_, std::max<std::uint64_t>(size_bytes, inode_->live.size()));
    }

    Status do_sync() override {
        device_.enter(Operation::kSync, path_);
        const std::lock_guard lock{device_.mutex_};
        STOKER_TRY_VOID(begin(Operation::kSync));
        inode_->durable = inode_->live;
        return {};
    }

    Result<std::uint64_t> do_size_bytes() override {
        const std::lock_guard lock{device_.mutex_};
        STOKER_TRY_VOID(begin(Operation::kOpen));
        return std::uint64_t{inode_->live.size()};
    }

    void do_will_need(std::uint64_t offset, std::uint64_t bytes) override {
        static_cast<void>(offset + bytes);  // a hint has no effect here
    }

    void do_wont_need(std::uint64_t offset, std::uint64_t bytes) override {
        static_cast<void>(offset + bytes);
    }

private:
    Status begin(Operation operation) {
        if (generation_ != device_.generation_) {
            return io_error("the power was cut since this file was opened");
        }
        return device_.enter_locked(operation);
    }

    Result<std::size_t> store(std::uint64_t offset, std::span<const std::byte> bytes) {
        const std::uint64_t size = inode_->live.size();
        std::uint64_t count = bytes.size();
        if (offset + count > size) {
            const Bytes free = device_.capacity_ - Bytes{device_.used_bytes()};
            const std::uint64_t room = size + free.count();
            count = offset >= room ? 0 : std::min(count, room - offset);
        }
        if (count == 0 && !bytes.empty()) {
            return fail(ErrorCode::kResourceExhausted, "no space left on device");
        }
        if (offset + count > size) {
            STOKER_TRY_VOID(device_.resize(*inode_, offset + count));
        }
        std::ranges::copy(
            bytes.first(count), inode_->live.begin() + static_cast<std::ptrdiff_t>(offset));
        return static_cast<std::size_t>(count);
    }

    FaultDevice& device_;
    InodePtr inode_;
    std::string path_;
    std::uint64_t generation_;
};

class FaultDevice::Mapping final : public DeviceMapping {
public:
    Mapping(InodePtr inode, bool writable)
        : DeviceMapping(inode->live.data(), inode->live.size(), writable),
          inode_(std::move(inode)) {}

private:
    InodePtr inode_;
};

class FaultDevice::Lock final : public DeviceLock {
public:
    Lock(FaultDevice& device, std::string path)
        : device_(device),
          path_(std::move(path)),
          generation_(device.generation_) {}

    ~Lock() override {
        const std::lock_guard lock{device_.mutex_};
        if (generation_ == device_.generation_) {
            device_.locks_.erase(path_);
        }
    }

private:
    FaultDevice& device_;
    std::string path_;
    std::uint64_t generation_;
};

FaultDevice::FaultDevice(std::uint64_t seed)
    : luck_(seed) {}

FaultDevice::~FaultDevice() = default;

void FaultDevice::set_hook(std::function<void(Operation, const std::string& path)> hook) {
    const std::lock_guard lock{mutex_};
    hook_ = std::move(hook);
}

std::vector<std::string> FaultDevice::paths() const {
    const std::lock_guard lock{mutex_};
    std::vector<std::string> out;
    for (const auto& [path, inode] : live_names_) {
        out.push_back(path);
    }
    return out;
}

std::optional<std::vector<std::byte>> FaultDevice::content(const std::string& path) const {
    const std::lock_guard lock{mutex_};
    const auto at = live_names_.find(path);
    return at == live_names_.end() ? std::nullopt : std::optional{at->second->live};
}

void FaultDevice::put(const std::string& path, std::vector<std::byte> content) {
    const std::lock_guard lock{mutex_};
    auto inode = std::make_shared<Inode>();
    inode->live = content;
    inode->durable = std::move(content);
    live_names_[path] = inode;
    durable_names_[path] = inode;
}

// Calls the hook without the lock: it may wait for another thread that needs the device.
void FaultDevice::enter(Operation operation, const std::string& path) {
    std::function<void(Operation, const std::string&)> hook;
    {
        const std::lock_guard lock{mutex_};
        hook = hook_;
    }
    if (hook) {
        hook(operation, path);
    }
}

Status FaultDevice::enter_locked(Operation operation) {
    if (killed_) {
        return io_error("the process is dead");
    }
    if (changes(operation)) {
        if (changes_left_ == 0) {
            killed_ = true;
            return io_error("the process was killed here");
        }
        --changes_left_;
        if (read_only_) {
            return io_error("read-only file system");
        }
    }
    return broken_[operation] ? Status{io_error("input/output error")} : Status{};
}

void FaultDevice::change_name(const std::string& path, InodePtr inode) {
    pending_names_[parent_path(path)].push_back({{path, inode}});
    if (inode == nullptr) {
        live_names_.erase(path);
    } else {
        live_names_[path] = std::move(inode);
    }
}

Result<FaultDevice::InodePtr> FaultDevice::find(const std::string& path) const {
    const auto at = live_names_.find(path);
    if (at == live_names_.end()) {
        return fail(ErrorCode::kNotFound, path + ": no such file");
    }
    return at->second;
}

Status FaultDevice::resize(Inode& inode, std::uint64_t size_bytes) {
    STOKER_CHECK(!inode.mapped || size_bytes == inode.live.size(), "resizing a mapped file");
    const std::uint64_t grown = size_bytes - std::min<std::uint64_t>(size_bytes, inode.live.size());
    if (grown > 0 && Bytes{used_bytes()} + Bytes{grown} > capacity_) {
        return fail(ErrorCode::kResourceExhausted, "no space left on device");
    }
    inode.live.resize(size_bytes);
    return {};
}

std::uint64_t FaultDevice::used_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [path, inode] : live_names_) {
        bytes += inode->live.size();
    }
    return bytes;
}

Result<std::unique_ptr<DeviceFile>> FaultDevice::do_create(
    const std::string& path, sidecar::Access /*access*/) {
    enter(Operation::kCreate, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kCreate));
    if (live_names_.contains(path)) {
        return fail(ErrorCode::kAlreadyExists, path + ": exists");
    }
    auto inode = std::make_shared<Inode>();
    change_name(path, inode);
    return std::make_unique<File>(*this, std::move(inode), path);
}

Result<std::unique_ptr<DeviceFile>> FaultDevice::do_open(const std::string& path) {
    enter(Operation::kOpen, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kOpen));
    STOKER_TRY(auto inode, find(path));
    return std::make_unique<File>(*this, std::move(inode), path);
}

Result<std::unique_ptr<DeviceMapping>> FaultDevice::do_map(
    const std::string& path, sidecar::MapMode mode) {
    enter(Operation::kMap, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kMap));
    STOKER_TRY(auto inode, find(path));
    if (inode->live.empty()) {
        return fail(ErrorCode::kCorruption, path + " is empty");
    }
    inode->mapped = true;
    return std::make_unique<Mapping>(std::move(inode), mode == sidecar::MapMode::kReadWrite);
}

Status FaultDevice::do_make_folder(const std::string& path, sidecar::Access /*access*/) {
    enter(Operation::kCreate, path);
    return {};  // folders are part of the names, so there is nothing to create
}

Status FaultDevice::do_unlink(const std::string& path) {
    enter(Operation::kUnlink, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kUnlink));
    STOKER_TRY(const auto inode, find(path));
    STOKER_CHECK(inode != nullptr, "a name without a file");
    change_name(path, nullptr);
    return {};
}

Status FaultDevice::do_rename(const std::string& source, const std::string& target) {
    enter(Operation::kRename, source);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kRename));
    STOKER_CHECK(parent_path(source) == parent_path(target), "rename between folders");
    STOKER_TRY(auto inode, find(source));
    live_names_.erase(source);
    live_names_[target] = inode;
    pending_names_[parent_path(target)].push_back({{source, nullptr}, {target, std::move(inode)}});
    return {};
}

Result<std::vector<std::string>> FaultDevice::do_list(const std::string& folder) {
    enter(Operation::kList, folder);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kList));
    std::set<std::string> names;
    const std::string prefix = folder + "/";
    for (const auto& [path, inode] : live_names_) {
        if (path.starts_with(prefix)) {
            names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
        }
    }
    return std::vector<std::string>{names.begin(), names.end()};
}

Status FaultDevice::do_sync_folder(const std::string& folder) {
    enter(Operation::kSync, folder);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kSync));
    for (const auto& step : pending_names_[folder]) {
        for (const NameChange& change : step) {
            if (change.inode == nullptr) {
                durable_names_.erase(change.path);
            } else {
                durable_names_[change.path] = change.inode;
            }
        }
    }
    pending_names_.erase(folder);
    return {};
}

Result<sidecar::DeviceSpace> FaultDevice::do_space(const std::string& path) {
    enter(Operation::kSpace, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kSpace));
    return sidecar::DeviceSpace{capacity_, capacity_ - Bytes{used_bytes()}};
}

Result<std::unique_ptr<DeviceLock>> FaultDevice::do_try_lock(const std::string& path) {
    enter(Operation::kOpen, path);
    const std::lock_guard lock{mutex_};
    STOKER_TRY_VOID(enter_locked(Operation::kOpen));
    if (!locks_.emplace(path, generation_).second) {
        return std::unique_ptr<DeviceLock>{};
    }
    return std::make_unique<Lock>(*this, path);
}

}  // namespace stoker::test
