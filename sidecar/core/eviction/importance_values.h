#pragma once

#include <span>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// What a resident sample is worth now, whoever says so. May change from call to call.
class ImportanceValues {
public:
    virtual ~ImportanceValues() = default;

    // Finite, 0 or more; only the order matters.
    [[nodiscard]] virtual float value(SampleIndex sample) const = 0;

    // Will be asked about soon (EvictionPolicy::expect).
    virtual void expect(std::span<const SampleIndex> /*samples*/) const {}

    // May this sample be substituted by others of its kind? Then it belongs to the L-region.
    [[nodiscard]] virtual bool unimportant(SampleIndex sample) const = 0;
};

}  // namespace stoker::sidecar
