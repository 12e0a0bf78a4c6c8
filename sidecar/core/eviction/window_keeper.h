#pragma once

#include <cstdint>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::sidecar {

// Knows which window samples will be read that no plan names: those of jobs whose order is decided
// as they go (contract `windowed`). The engine asks it before it drops one that no plan needs, and
// when the window is full. Not thread-safe; must not call back.
class WindowKeeper {
public:
    virtual ~WindowKeeper() = default;

    // Somebody will read the sample in his current epoch.
    [[nodiscard]] virtual bool keeps(domain::SampleIndex sample) const = 0;

    // Appends at most `count` window samples that it keeps, to drop for others, cheapest loss
    // first; unless somebody waits for the room, only those that nobody will read soon.
    virtual void victims(
        std::uint32_t count, bool urgent, std::vector<domain::SampleIndex>& samples) const = 0;
};

}  // namespace stoker::sidecar
