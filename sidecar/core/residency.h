#pragma once

#include "common/domain/ids.h"

namespace stoker::sidecar {

// Tells which samples of a dataset are on this node. The engine's SampleTable implements it;
// samplers query it. Sample ids must be below the dataset's count. Not thread-safe.
class Residency {
public:
    virtual ~Residency() = default;

    // Whether clients can read the sample, resident or in the window.
    [[nodiscard]] virtual bool is_stored(domain::SampleIndex sample) const = 0;

    // Hint: a query about the sample follows soon; may bring its state into the CPU's cache.
    virtual void expect(domain::SampleIndex /*sample*/) const {}

    // Whether a stored sample's class is resident.
    [[nodiscard]] virtual bool is_kept(domain::SampleIndex sample) const = 0;
};

// Is notified of every sample that is stored on the node or leaves it, after Residency has changed.
// Must not call back.
class ResidencyListener {
public:
    virtual ~ResidencyListener() = default;

    // `kept`: the sample is a resident, not one that passes through the window.
    virtual void on_stored(domain::SampleIndex sample, bool kept) = 0;

    // The sample was dropped, or its fetch failed.
    virtual void on_gone(domain::SampleIndex sample) = 0;
};

}  // namespace stoker::sidecar
