#pragma once

#include <memory>
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
// Costs: every call is O(log n) at most, amortised over the residents n. Deterministic: equal
// histories choose equally, ties go to the lower index. Not thread-safe.
class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;

    // `bytes` is what it takes on the node, header and padding included.
    virtual void on_resident(SampleIndex sample, Bytes bytes) = 0;
    virtual void on_gone(SampleIndex sample) = 0;

    // A job asked for the sample: hit or miss.
    virtual void on_read(SampleIndex sample, bool hit) = 0;

    // Appends residents worth less than `incoming`, cheapest loss first, that together take at
    // least `needed` bytes, and says true; or appends nothing and says false: `incoming` is served
    // without being kept. Nothing changes here until on_gone() is called for the victims.
    // Residents for which `may_go` says false are passed over.
    class MayGo {
    public:
        virtual ~MayGo() = default;
        [[nodiscard]] virtual bool operator()(SampleIndex sample) const = 0;
    };

    virtual bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) = 0;

    // The residents to give up when the grant shrinks by `excess`, least valuable first.
    virtual void shrink(Bytes excess, std::vector<SampleIndex>& victims) = 0;
};

}  // namespace stoker::sidecar
