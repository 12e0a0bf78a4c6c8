#pragma once

#include <optional>
#include <string>

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/dataset/job_refusals.h"
#include "operator/controllers/own_writes.h"
#include "operator/controllers/trainingjob/diagnosis_finder.h"
#include "operator/core/sweep/plan_packing.h"

namespace stoker::control {

// Creates and removes the packing Job of a Dataset as operator/core/sweep/plan_packing.h plans.
// Remembers the API server's refusals. Thread-safe; different Datasets may run in parallel.
class PackingKeeper {
public:
    // Longest interval between retries, and between searches for the reason why pods do not start.
    static constexpr Duration kWaitMost = std::chrono::minutes{5};

    struct Look {
        PackingPlan plan;
        std::optional<PackingOutcome> outcome;  // none: the Dataset has no spec.packing
        std::optional<Duration> look_again;     // plan again then, even if nothing changes
    };

    explicit PackingKeeper(const ControllerParts& parts)
        : parts_(parts),
          writes_(parts.clock),
          diagnoses_(parts.client, parts.clock),
          refusals_(parts.clock, kWaitMost) {}

    // Returns a plan, and the outcome so far. May request Events.
    Look look(const Dataset& dataset);

    // True if the cache shows the last write for the Dataset.
    bool has_seen_own_writes(const ObjectKey& dataset);

    // Executes the plan. Returns when to look again. A refusal is not an error: look() reports it.
    Result<std::optional<Duration>> act(const Dataset& dataset, const PackingPlan& plan);

    // Call it when the Dataset is gone.
    void forget(const ObjectKey& dataset);

private:
    Result<std::optional<Duration>> create(const Dataset& dataset);
    Status remove(const Job& job);

    ControllerParts parts_;
    OwnWrites writes_;  // by Dataset
    DiagnosisFinder diagnoses_;
    JobRefusals refusals_;
};

}  // namespace stoker::control
