#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/core/view/training_job_view.h"

// The attempts of a TrainingJob: their Jobs, and the state of their pods. Pure.
namespace stoker::control {

struct Attempts {
    std::int64_t number = 0;        // of the present or next attempt; 0: none yet
    const Job* current = nullptr;   // its Job, or null; points into the view
    std::vector<const Job*> older;  // Jobs of earlier attempts, by number
};

// The newest attempt in the status or among the Jobs.
Attempts find_attempts(const TrainingJobView& view);

// Another owner's object with the name of the job's Service or of its attempt's Job.
struct NameClash {
    std::string object;   // "Service resnet-ranks"; empty: none
    bool leaves = false;  // it belongs to a deleted TrainingJob of the same name
};

NameClash find_name_clash(const TrainingJobView& view, const Attempts& attempts);

// Reports of the pods of the attempt, without those of earlier attempts.
std::vector<SidecarReport> reports_of_attempt(const TrainingJobView& view, std::int64_t attempt);

// How the Job differs from the one that the job needs: "Job resnet-a1 has 2 ranks, not 3
// (numNodes)", or another client has suspended it; empty: not.
std::string change_of(const Job& attempt, std::int64_t ranks_wanted);

// Delay before the next attempt after `restarts` failures: 0 after the first, then 10 s, doubled
// each time up to 6 min.
Duration restart_delay(std::int64_t restarts);

// Whether no pod of any attempt runs or can still start. Terminating pods on a lost node do not
// count: the node may never come back.
bool pods_are_gone(const TrainingJobView& view, const Attempts& attempts, WallTime now);

// Names of the Job's pods that cannot terminate because their node is gone, or not ready for
// kLostNodeAfter.
std::vector<std::string> lost_pods(
    const TrainingJobView& view, const std::string& job_name, WallTime now);

// Whether the Job failed for a reason outside the training: drain, preemption, eviction, a lost
// or restarted node.
bool was_disrupted(const Job& job, const std::vector<Pod>& pods);

// "rank 1 (pod x) exited with code 1 (Error): "KeyError: 3"." from the Job's pods, with the
// trainer's last line if the kubelet kept it; else the Job controller's message.
std::string failure_of(const Job& job, const std::vector<Pod>& pods);

// Why a pod of the Job waits, for the lowest waiting rank: "Pod x waits for a node: 0/3 nodes ...";
// empty: none waits.
std::string what_pods_wait_for(const std::vector<Pod>& pods, const std::string& job_name);

// Number of pods of an attempt that train or have succeeded. A rank counts until its trainer ends:
// its pod is not ready while the sidecar stops, but the rank is complete.
std::int64_t ranks_running(const Job& attempt, const std::vector<Pod>& pods);

// "All 2 ranks run.", or "1 of 2 ranks run." and the known state of the others.
std::string tell_ranks(const Job& attempt, const std::vector<Pod>& pods, std::int64_t wanted);

}  // namespace stoker::control
