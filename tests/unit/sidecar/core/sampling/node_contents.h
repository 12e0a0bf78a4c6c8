#pragma once

#include <cstdint>
#include <map>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::test {

using sidecar::SampleIndex;

// What is on a node because a test says so.
class NodeContents final : public sidecar::Residency {
public:
    void store(SampleIndex sample, bool kept = false) { stored_[sample] = kept; }

    // And tells the sampler.
    void store(sidecar::Sampler& sampler, SampleIndex sample) {
        store(sample);
        sampler.on_stored(sample);
    }

    // And tells the listener.
    void store(sidecar::ResidencyListener& listener, SampleIndex sample, bool kept) {
        store(sample, kept);
        listener.on_stored(sample, kept);
    }

    void drop(SampleIndex sample) { stored_.erase(sample); }

    void drop(sidecar::ResidencyListener& listener, SampleIndex sample) {
        drop(sample);
        listener.on_gone(sample);
    }

    [[nodiscard]] bool is_stored(SampleIndex sample) const override {
        return stored_.contains(sample);
    }

    [[nodiscard]] bool is_kept(SampleIndex sample) const override {
        const auto found = stored_.find(sample);
        return found != stored_.end() && found->second;
    }

private:
    std::map<SampleIndex, bool> stored_;  // kept
};

// For samplers of which it does not matter. Stays empty.
inline const NodeContents kEmptyNode{};

}  // namespace stoker::test
