#pragma once

#include "common/domain/ids.h"

namespace stoker::sidecar {

// Hears of every sample that comes to the node or leaves it. Must not call back.
class ResidencyListener {
public:
    virtual ~ResidencyListener() = default;

    // `kept`: its class is resident.
    virtual void on_stored(domain::SampleIndex sample, bool kept) = 0;

    // It was dropped, or its fetch failed.
    virtual void on_gone(domain::SampleIndex sample) = 0;
};

}  // namespace stoker::sidecar
