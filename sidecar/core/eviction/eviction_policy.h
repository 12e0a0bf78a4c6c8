#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/ids.h"

// Which residents of a node directory stay, and which go to make room for others. The engine owns
// one policy a dataset; `stoker simulate` runs the same ones.
namespace stoker::sidecar {

using domain::SampleIndex;

// Keeps an opinion on every resident sample. It is told what became resident and what went away,
// whoever decided that; it never drops anything itself.
//
// Order of calls for a sample that is not there: make_room() where the grant is full, on_gone() for
// the victims, on_resident() as soon as its bytes are reserved (its payload may still be on its
// way), and on_read() when a job has read it, kept or not.
//
// Costs: every call is O(log n) at most, amortised over the residents n; shrink() may be O(n log
// n). Deterministic: equal histories choose equally, ties go to the lower index. Not thread-safe.
class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;

    // `bytes` is what it takes on the node, header and padding included.
    virtual void on_resident(SampleIndex sample, Bytes bytes) = 0;
    virtual void on_gone(SampleIndex sample) = 0;

    // A job has read the sample. `hit`: it was resident before that read was planned or asked for.
    virtual void on_read(SampleIndex sample, bool hit) = 0;

    // Appends residents worth less than `incoming`, cheapest loss first, that together take at
    // least `needed` bytes, and says true; or appends nothing and says false: `incoming` is served
    // without being kept. No resident is forgotten here until on_gone() is called for it.
    // Residents for which `may_go` says false are passed over; a policy may give up after some of
    // them, so that a full house of readers costs nobody's time.
    using MayGo = std::function<bool(SampleIndex)>;

    // These will be asked about soon: asks for what is known of them from memory, and changes
    // nothing. Questions about samples in a random order mostly wait for memory.
    virtual void expect(std::span<const SampleIndex> /*samples*/) const {}

    virtual bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) = 0;

    // Appends the residents to give up when the grant shrinks by `excess`, least valuable first:
    // at least so many bytes, or all there are.
    virtual void shrink(Bytes excess, std::vector<SampleIndex>& victims) = 0;
};

}  // namespace stoker::sidecar
