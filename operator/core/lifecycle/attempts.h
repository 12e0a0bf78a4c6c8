#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/core/view/training_job_view.h"

// The attempts of a TrainingJob: their Jobs, and the state of their pods. Pure.
namespace stoker::control {

struct Attempts {
    std::int64_t number = 0;        // of the attempt that is, or should be, there; 0: none yet
    const Job* current = nullptr;   // its Job, if it is there; points into the view
    std::vector<const Job*> older;  // Jobs of attempts before it, by number
};

// The newest attempt that status or a Job knows of.
Attempts find_attempts(const TrainingJobView& view);

// The object of somebody else that has the name of the job's Service or of its attempt's Job.
struct NameClash {
    std::string object;   // "Service resnet-ranks"; empty: none
    bool leaves = false;  // it belongs to a deleted TrainingJob of the same name
};

NameClash find_name_clash(const TrainingJobView& view, const Attempts& attempts);

// Reports of that attempt's pods: the numbers of an attempt before it are history.
std::vector<SidecarReport> reports_of_attempt(const TrainingJobView& view, std::int64_t attempt);

// How long to wait before the attempt after `restarts` failures: nothing at first, then 10 s,
// doubling, at most 6 min.
Duration restart_delay(std::int64_t restarts);

// Whether no pod of any attempt can still run, or come. Pods that wait for their end on a lost node
// do not count: the node may never come back.
bool pods_are_gone(const TrainingJobView& view, const Attempts& attempts, WallTime now);

// Names of the Job's pods that are to end but cannot, because their node is gone or not ready for
// kLostNodeAfter.
std::vector<std::string> lost_pods(
    const TrainingJobView& view, const std::string& job_name, WallTime now);

// Whether the Job failed for something outside the training: drain, preemption, eviction, a lost
// node.
bool was_disrupted(const Job& job, const std::vector<Pod>& pods);

// "rank 1 (pod x) exited with code 1 (Error): "KeyError: 3"." from its pods, with the last line
// that the trainer wrote where the kubelet kept it; else what the Job controller says.
std::string failure_of(const Job& job, const std::vector<Pod>& pods);

// The first thing that a pod of the Job waits for, lowest rank first: "Pod x waits for a node: 0/3
// nodes ..."; or nothing.
std::string what_pods_wait_for(const std::vector<Pod>& pods, const std::string& job_name);

// Pods of an attempt that train or have ended well. A rank counts until its trainer has ended: its
// pod is not ready any more while the sidecar stops, but nothing is missing.
std::int64_t ranks_running(const Job& attempt, const std::vector<Pod>& pods);

// "All 2 ranks run.", or "1 of 2 ranks run." and what is known of the others.
std::string tell_ranks(const Job& attempt, const std::vector<Pod>& pods, std::int64_t wanted);

}  // namespace stoker::control
