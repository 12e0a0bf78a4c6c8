#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/domain/ids.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// A store's data beside its segments, in `state.<revision>.json`. It may be deleted at any time:
// then no segment counts as synced (docs/design/node-directory.md).
struct StoreState {
    std::string boot_id;  // of the kernel that was running when this was written
    bool clean = false;   // written by close(); the store was not changed afterwards
    // Segments that are durable and undamaged, ascending. Listed one by one: a power cut may
    // restore an unlinked file that was never synced, and it must not count as synced.
    std::vector<std::uint32_t> synced;

    // Whether the payloads of segment `seq` need no check after a reboot.
    [[nodiscard]] bool is_synced(domain::SegmentSeq seq) const;

    bool operator==(const StoreState&) const = default;
};

// One line of JSON that ends with its own checksum. `boot_id` must pass is_plain_text().
std::string encode_state(const StoreState& state);

// nullopt for every text that encode_state() does not write, because such a state cannot be
// trusted.
std::optional<StoreState> decode_state(std::string_view text);

// Letters, digits and '-', at most 64: the characters of a boot id.
bool is_plain_text(std::string_view text);

// nullopt: missing or damaged. Errors: the file exists but cannot be read.
Result<std::optional<StoreState>> load_state(Device& device, const std::string& path);

// Durable on return.
Status save_state(Device& device, const std::string& path, const StoreState& state);

}  // namespace stoker::sidecar
