#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/domain/ids.h"
#include "sidecar/core/eviction/party.h"

namespace stoker::sidecar {

// A request for room in the window.
struct RoomRequest {
    Party party = kOwnParty;                            // the party that asks for room
    bool urgent = false;                                // a client waits for the room
    std::uint32_t count = 1;                            // number of samples to drop
    std::function<bool(domain::SampleIndex)> may_go{};  // whether a sample may be dropped
};

// Knows which window samples will still be read although no plan names them: those of jobs that
// choose their order as they go (contract `windowed`). The engine asks it before dropping a sample
// that no plan needs, and when the window is full. Not thread-safe; must not call back.
class WindowKeeper {
public:
    virtual ~WindowKeeper() = default;

    // Whether a reader will read the sample in its current epoch.
    [[nodiscard]] virtual bool keeps(domain::SampleIndex sample) const = 0;

    // Appends at most `room.count` kept window samples that may be dropped, those that the fewest
    // readers wait for first. Unless `room` is urgent, appends only samples that neither the
    // dataset's own namespace nor the requesting party will read soon.
    virtual void victims(
        const RoomRequest& room, std::vector<domain::SampleIndex>& samples) const = 0;
};

}  // namespace stoker::sidecar
