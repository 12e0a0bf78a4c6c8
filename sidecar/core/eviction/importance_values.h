#pragma once

#include <span>

#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Current value of each resident sample, whatever its source. May change from call to call.
class ImportanceValues {
public:
    virtual ~ImportanceValues() = default;

    // The sample's value: finite, 0 or more; only the order matters.
    [[nodiscard]] virtual float value(SampleIndex sample) const = 0;

    // Hint: the samples will be queried soon (EvictionPolicy::expect).
    virtual void expect(std::span<const SampleIndex> /*samples*/) const {}

    // Whether other unimportant samples may substitute for this one; if so, it belongs to the
    // L-region.
    [[nodiscard]] virtual bool unimportant(SampleIndex sample) const = 0;
};

}  // namespace stoker::sidecar
