#include "sidecar/store/old_layout.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

bool is_old_file(std::string_view name) {
    constexpr std::string_view kTemporary = ".tmp";
    if (name.ends_with(kTemporary)) {
        name.remove_suffix(kTemporary.size());
    }
    return name == domain::kLeaderSocket || name == "leader.sock.new" ||
           name == domain::kCurrentFile || domain::parse_manifest_name(name) ||
           domain::parse_residency_name(name) || domain::parse_state_name(name);
}

bool is_old_segment(std::string_view name) {
    return domain::parse_segment_name(name) || domain::parse_sequence_mark_name(name);
}

Result<std::vector<std::string>> old_files(Device& device, const std::string& node_directory) {
    std::vector<std::string> paths;
    const auto segments = join_path(node_directory, domain::kSegmentFolder);
    if (const auto names = device.list(segments)) {
        for (const std::string& name : *names) {
            if (is_old_segment(name)) {
                paths.push_back(join_path(segments, name));
            }
        }
    } else if (names.error().code != ErrorCode::kNotFound) {
        return fail(names.error());
    }
    STOKER_TRY(const auto names, device.list(node_directory));
    for (const std::string& name : names) {
        if (is_old_file(name)) {
            paths.push_back(join_path(node_directory, name));
        }
    }
    return paths;
}

}  // namespace

Result<std::uint64_t> remove_old_layout(Device& device, const std::string& node_directory) {
    STOKER_TRY(const auto names, device.list(node_directory));
    const bool has_lock = std::ranges::find(names, domain::kLockFile) != names.end();
    const auto lock_path = join_path(node_directory, domain::kLockFile);
    std::unique_ptr<DeviceLock> lock;
    if (has_lock) {
        STOKER_TRY(lock, device.try_lock(lock_path));
        if (lock == nullptr) {
            return std::uint64_t{0};
        }
    }
    STOKER_TRY(auto paths, old_files(device, node_directory));
    if (has_lock) {
        paths.push_back(lock_path);  // last, so that the next call finds an interrupted removal
    }
    std::uint64_t removed = 0;
    for (const std::string& path : paths) {
        if (const Status status = device.unlink(path); status.has_value()) {
            ++removed;
        } else if (status.error().code != ErrorCode::kNotFound) {
            return fail(status.error());
        }
    }
    return removed;
}

}  // namespace stoker::sidecar
