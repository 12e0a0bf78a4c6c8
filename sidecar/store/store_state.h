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

// What a store remembers beside its segments, in `state.<revision>.json`. It may be deleted at any
// time: then nothing is known to be synced (docs/design/node-directory.md).
struct StoreState {
    std::string boot_id;  // of the kernel under which it was written
    bool clean = false;   // by close(): nothing was written after it
    // Segments that are durable and as they were written, ascending. Named one by one: a power cut
    // may bring back an unlinked file that was never synced, and it must not pass for one that was.
    std::vector<std::uint32_t> synced;

    // True when the payloads of `seq` need no look after a reboot.
    [[nodiscard]] bool is_synced(domain::SegmentSeq seq) const;

    bool operator==(const StoreState&) const = default;
};

// One line of JSON that ends with its own checksum. `boot_id` must pass is_plain_text().
std::string encode_state(const StoreState& state);

// nullopt for every text that encode_state() does not write: a state that we cannot trust is no
// state.
std::optional<StoreState> decode_state(std::string_view text);

// Letters, digits and '-', at most 64 of them: what a boot id is made of.
bool is_plain_text(std::string_view text);

// nullopt: missing or damaged. An error: the file is there and cannot be read.
Result<std::optional<StoreState>> load_state(Device& device, const std::string& path);

// Durable on return.
Status save_state(Device& device, const std::string& path, const StoreState& state);

}  // namespace stoker::sidecar
