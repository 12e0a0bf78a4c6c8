#pragma once

#include "common/domain/ids.h"

namespace stoker::sidecar {

// Which samples of a dataset are on this node. One object knows it, the engine's SampleTable, and
// samplers ask that one. Samples must be below the dataset's count. Not thread-safe.
class Residency {
public:
    virtual ~Residency() = default;

    // Readable by clients, residents and window alike.
    [[nodiscard]] virtual bool is_stored(domain::SampleIndex sample) const = 0;

    // Is its class resident? For a stored sample.
    [[nodiscard]] virtual bool is_kept(domain::SampleIndex sample) const = 0;
};

// Hears of every sample that comes to the node or leaves it, when Residency says so already. Must
// not call back.
class ResidencyListener {
public:
    virtual ~ResidencyListener() = default;

    // `kept`: its class is resident.
    virtual void on_stored(domain::SampleIndex sample, bool kept) = 0;

    // It was dropped, or its fetch failed.
    virtual void on_gone(domain::SampleIndex sample) = 0;
};

}  // namespace stoker::sidecar
