// The fault injection of FaultDevice.
#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "tests/support/fault_device.h"

namespace stoker::test {

namespace {

constexpr std::uint64_t kBlockBytes = 512;

}  // namespace

void FaultDevice::power_cut() {
    const std::lock_guard lock{mutex_};
    ++generation_;
    killed_ = false;
    changes_left_ = std::numeric_limits<std::uint64_t>::max();
    locks_.clear();
    lose_unsynced_names();
    std::map<const Inode*, InodePtr>
        survivors;  // in new inodes, so that old maps cannot reach the surviving content
    for (auto& [path, inode] : durable_names_) {
        InodePtr& survivor = survivors[inode.get()];
        if (survivor == nullptr) {
            lose_unsynced_bytes(*inode);
            survivor = std::make_shared<Inode>(Inode{inode->durable, inode->durable, false});
        }
        inode = survivor;
    }
    live_names_ = durable_names_;
}

void FaultDevice::sync_all() {
    const std::lock_guard lock{mutex_};
    for (auto& [path, inode] : live_names_) {
        inode->durable = inode->live;
    }
    durable_names_ = live_names_;
    pending_names_.clear();
}

void FaultDevice::lose_unsynced_names() {
    for (auto& [folder, pending] : pending_names_) {
        pending.resize(luck_.below(pending.size() + 1));
        for (const auto& step : pending) {
            for (const NameChange& change : step) {
                if (change.inode == nullptr) {
                    durable_names_.erase(change.path);
                } else {
                    durable_names_[change.path] = change.inode;
                }
            }
        }
    }
    pending_names_.clear();
}

// Sets `durable` to the content after a power cut: each block is the old or the new one, the length is
// between both.
void FaultDevice::lose_unsynced_bytes(Inode& inode) {
    const auto& live = inode.live;
    auto& durable = inode.durable;
    const std::uint64_t shorter = std::min(live.size(), durable.size());
    const std::uint64_t longer = std::max(live.size(), durable.size());
    const std::uint64_t draw = luck_.below(4);
    const std::uint64_t size = draw == 0   ? durable.size()
                               : draw == 1 ? shorter + luck_.below(longer - shorter + 1)
                                           : live.size();
    std::vector<std::byte> left(size);  // a block that was never written reads as zeroes
    for (std::uint64_t at = 0; at < size; at += kBlockBytes) {
        const auto& source = luck_.below(2) == 0 ? durable : live;
        const std::uint64_t end = std::min({at + kBlockBytes, size, source.size()});
        if (at < end) {
            std::memcpy(left.data() + at, source.data() + at, end - at);
        }
    }
    durable = std::move(left);
}

void FaultDevice::kill_after(std::uint64_t changes_more) {
    const std::lock_guard lock{mutex_};
    changes_left_ = changes_more;
}

bool FaultDevice::is_killed() const {
    const std::lock_guard lock{mutex_};
    return killed_;
}

void FaultDevice::revive() {
    const std::lock_guard lock{mutex_};
    killed_ = false;
    changes_left_ = std::numeric_limits<std::uint64_t>::max();
}

void FaultDevice::set_capacity(Bytes capacity) {
    const std::lock_guard lock{mutex_};
    capacity_ = capacity;
}

void FaultDevice::set_read_only(bool read_only) {
    const std::lock_guard lock{mutex_};
    read_only_ = read_only;
}

void FaultDevice::set_broken(Operation operation, bool broken) {
    const std::lock_guard lock{mutex_};
    broken_[operation] = broken;
}

void FaultDevice::flip_bit(const std::string& path, std::uint64_t byte_offset, unsigned bit) {
    const std::lock_guard lock{mutex_};
    Inode& inode = *live_names_.at(path);
    const auto mask = static_cast<std::byte>(1U << bit);
    inode.live.at(byte_offset) ^= mask;
    if (byte_offset < inode.durable.size()) {
        inode.durable[byte_offset] ^= mask;
    }
}

void FaultDevice::cut(const std::string& path, std::uint64_t size_bytes) {
    const std::lock_guard lock{mutex_};
    Inode& inode = *live_names_.at(path);
    STOKER_CHECK(!inode.mapped, "cutting a mapped file is a SIGBUS");
    inode.live.resize(std::min<std::uint64_t>(size_bytes, inode.live.size()));
    inode.durable.resize(std::min<std::uint64_t>(size_bytes, inode.durable.size()));
}

}  // namespace stoker::test
