#pragma once

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/decide_pool.h"

// When the last plan's targets stay. With unchanged inputs, targets change only if the last plan is
// not feasible or the claims' bytes become worth more (value_at()), so plans cannot alternate: they
// end in a fixpoint. Pure; private to operator/core/allocation.
namespace stoker::control {

// Whether value_at() is what the objective maximizes: not so for MaxMin and Even.
bool has_value(Objective objective);

// Sums the value that a change of some claims' bytes gains and loses.
class ValueChange {
public:
    void add(const ClaimTable& table, const Claim& claim, Bytes before, Bytes after);

    // Whether the gain exceeds the loss by more than rounding errors.
    [[nodiscard]] bool gains() const { return gain_ > loss_ + noise_; }

    [[nodiscard]] bool loses() const { return loss_ > gain_ + noise_; }

private:
    double gain_ = 0;
    double loss_ = 0;
    double noise_ = 0;
};

// The last plan's targets, without bytes that only fills want.
ClaimBytes last_targets(const ClaimTable& table);

// Whether `decision.target` moves at most one step between the claims of the last plan, which could
// stay. Amounts that are divided among nodes and rounded again could otherwise move forever.
bool moves_within_a_step(const ClaimTable& table, const PoolDecision& decision);

// `decision.target`, but with the last plan's bytes in each part of the change that may not replace
// them: a part may if it only adds bytes, or is worth more, or if the last plan is not feasible there
// any more. A part: changed claims connected by common nodes or datasets. If such parts do not fit
// the limits, common accounts connect claims, too; else the pool is one part.
ClaimBytes mend_last_plan(const ClaimTable& table, const PoolDecision& decision);

}  // namespace stoker::control
