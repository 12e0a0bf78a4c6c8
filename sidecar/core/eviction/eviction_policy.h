#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"

// Which residents of a node directory stay and which are evicted to make room. The engine owns one
// policy per dataset; `stoker simulate` runs the same policies.
namespace stoker::sidecar {

using domain::SampleIndex;

// Ranks the resident samples. The caller reports which samples became resident and which left, for
// whatever reason; the policy itself drops nothing.
//
// Call order for an absent sample: make_room() if the grant is full, on_gone() for the victims,
// on_resident() once its bytes are reserved (its payload may still be in flight), and on_read()
// when a job has read it, kept or not.
//
// Costs: every call is at most O(log n), amortised over n residents; shrink() may be O(n log n).
// Deterministic: equal histories give equal choices, ties go to the lower index. Not thread-safe.
class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;

    // Registers a new resident. `bytes`: its size on the node, header and padding included.
    virtual void on_resident(SampleIndex sample, Bytes bytes) = 0;
    virtual void on_gone(SampleIndex sample) = 0;

    // A job has read the sample. `hit`: it was resident before that read was planned or requested.
    virtual void on_read(SampleIndex sample, bool hit) = 0;

    // Appends residents worth less than `incoming`, the least valuable first, with at least
    // `needed` bytes in all, and returns true; or appends nothing and returns false: `incoming` is
    // served without being kept. Victims stay registered until on_gone(). Skips residents that
    // `may_go` rejects; a policy may give up after a bounded number of them.
    using MayGo = std::function<bool(SampleIndex)>;

    // Hint that these samples will be queried soon: prefetches their state into the processor's
    // cache and changes nothing. Queries in random order are bound by memory latency.
    virtual void expect(std::span<const SampleIndex> /*samples*/) const {}

    virtual bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) = 0;

    // Appends the residents to evict when the grant shrinks by `excess`, least valuable first: at
    // least that many bytes, or all residents.
    virtual void shrink(Bytes excess, std::vector<SampleIndex>& victims) = 0;
};

}  // namespace stoker::sidecar
