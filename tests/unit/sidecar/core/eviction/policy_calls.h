#pragma once

#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"

// Short forms of a policy's calls, for tests.
namespace stoker::test {

// A MayGo that rejects only these samples.
struct AllBut final {
    explicit AllBut(std::set<sidecar::SampleIndex> pinned = {})
        : pinned_(std::move(pinned)) {}

    bool operator()(sidecar::SampleIndex sample) const { return !pinned_.contains(sample); }

private:
    std::set<sidecar::SampleIndex> pinned_;
};

inline std::vector<sidecar::SampleIndex> make_room(
    sidecar::EvictionPolicy& policy,
    sidecar::SampleIndex incoming,
    Bytes needed,
    std::set<sidecar::SampleIndex> pinned = {}) {
    std::vector<sidecar::SampleIndex> victims;
    policy.make_room(incoming, needed, AllBut{std::move(pinned)}, victims);
    return victims;
}

inline std::vector<sidecar::SampleIndex> shrink(sidecar::EvictionPolicy& policy, Bytes excess) {
    std::vector<sidecar::SampleIndex> victims;
    policy.shrink(excess, victims);
    return victims;
}

// Admits samples of ten bytes each.
inline void admit(
    sidecar::EvictionPolicy& policy, std::initializer_list<sidecar::SampleIndex> samples) {
    for (const sidecar::SampleIndex sample : samples) {
        policy.on_resident(sample, Bytes{10});
    }
}

}  // namespace stoker::test
