#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/guarded.h"
#include "operator/controllers/controller_parts.h"
#include "operator/controllers/dataset/job_refusals.h"
#include "operator/controllers/own_writes.h"
#include "operator/controllers/trainingjob/diagnosis_finder.h"
#include "operator/core/sweep/plan_fillers.h"
#include "operator/core/view/cluster_view.h"

namespace stoker::control {

// Creates and removes the fillers of Datasets as operator/core/sweep/plan_fillers.h plans.
// Remembers the API server's refusals. Thread-safe; different Datasets may run in parallel.
class FillerKeeper {
public:
    struct Look {
        FillerPlan plan;
        std::vector<FillerState> states;
    };

    explicit FillerKeeper(const ControllerParts& parts)
        : parts_(parts),
          writes_(parts.clock),
          diagnoses_(parts.client, parts.clock),
          refusals_(parts.clock, JobRefusals::kTryAgain) {}

    // Returns the fillers' states and a plan. `users`: the jobs that read the Dataset. May request
    // Events.
    Look look(const Dataset& dataset, const std::vector<JobUse>& users);

    // True if the cache shows the last write for the Dataset.
    bool has_seen_own_writes(const ObjectKey& dataset);

    // Executes the plan. Returns when to look again. A refusal is not an error: look() reports it.
    Result<std::optional<Duration>> act(const Dataset& dataset, const FillerPlan& plan);

    // Call it when the Dataset is gone.
    void forget(const ObjectKey& dataset);

private:
    using Runs = std::map<FillerPlace, WallTime>;              // runs_by_place()
    using SilentPods = std::map<std::string, TimePoint>;       // by uid: since when
    using ReportingPod = std::pair<std::string, std::string>;  // pool, pod

    JobManifest build(
        const Dataset& dataset, const FillerPlace& place, std::optional<WallTime> run) const;
    [[nodiscard]] std::vector<DatasetWarmup> find_warmups(const Dataset& dataset) const;
    [[nodiscard]] ResolvedPool find_pool(const std::string& name) const;
    // The fillers' pods at these places that reported recently. Copies each pool's reports once.
    [[nodiscard]] std::set<ReportingPod> reporting_pods(
        const Dataset& dataset, const std::set<FillerPlace>& places) const;
    // Ready fillers that warm-ups need and that do not report, with the time for which this
    // operator has seen no report.
    std::map<FillerPlace, Duration> find_silent(
        const Dataset& dataset,
        const std::vector<DatasetWarmup>& warmups,
        const std::vector<Pod>& pods);
    FillerDiagnoses find_diagnoses(const std::vector<Job>& jobs, const std::vector<Pod>& pods);
    // Returns the retry delay; nullopt: the filler was created.
    Result<std::optional<Duration>> create(
        const Dataset& dataset, const FillerPlace& place, const Runs& runs);
    Status remove(const Dataset& dataset, const FillerJob& job);
    Status patch(const Dataset& dataset, const FillerJob& job, const Json& body);

    ControllerParts parts_;
    OwnWrites writes_;  // by Dataset
    DiagnosisFinder diagnoses_;
    JobRefusals refusals_;
    Guarded<std::map<ObjectKey, SilentPods>> silent_;  // by Dataset
};

}  // namespace stoker::control
