#pragma once

#include <cstdint>
#include <map>

#include "sidecar/core/sampling/sampler.h"

namespace stoker::test {

using sidecar::SampleIndex;

// Fake residency: the test sets which samples are on the node.
class NodeContents final : public sidecar::Residency {
public:
    void store(SampleIndex sample, bool kept = false) { stored_[sample] = kept; }

    // Stores the sample and notifies the sampler.
    void store(sidecar::Sampler& sampler, SampleIndex sample) {
        store(sample);
        sampler.on_stored(sample);
    }

    // Stores the sample and notifies the listener.
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
    std::map<SampleIndex, bool> stored_;  // whether it is kept
};

// For samplers that ignore residency. Stays empty.
inline const NodeContents kEmptyNode{};

}  // namespace stoker::test
