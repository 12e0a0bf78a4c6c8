#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/domain/ids.h"
#include "sidecar/core/eviction/party.h"

namespace stoker::sidecar {

// Room in the window that somebody wants.
struct RoomRequest {
    Party party = kOwnParty;                            // who wants it
    bool urgent = false;                                // somebody waits for it
    std::uint32_t count = 1;                            // samples
    std::function<bool(domain::SampleIndex)> may_go{};  // empty: every one may
};

// Knows which window samples will be read that no plan names: those of jobs whose order is decided
// as they go (contract `windowed`). The engine asks it before it drops one that no plan needs, and
// when the window is full. Not thread-safe; must not call back.
class WindowKeeper {
public:
    virtual ~WindowKeeper() = default;

    // Somebody will read the sample in his current epoch.
    [[nodiscard]] virtual bool keeps(domain::SampleIndex sample) const = 0;

    // Appends at most `room.count` window samples that it keeps, to drop for others, cheapest loss
    // first; unless the room is urgent, only those that neither the own party nor the one that
    // wants it will read soon.
    virtual void victims(
        const RoomRequest& room, std::vector<domain::SampleIndex>& samples) const = 0;
};

}  // namespace stoker::sidecar
