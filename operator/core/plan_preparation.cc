#include "operator/core/plan_preparation.h"

#include "operator/core/pod_name_hash.h"

namespace stoker::control {

namespace {

enum class Fate { kLeave, kFinish, kGiveUp, kDrop };

// What becomes of a pod of a wanted target that is not being deleted yet.
Fate fate_of(const PreparationPod& pod, WallTime now, const PreparationLimits& limits) {
    const Duration age = now - pod.created_at;
    switch (pod.phase) {
        case PodPhase::kSucceeded:
            return Fate::kFinish;
        case PodPhase::kFailed:
            return age > limits.retry_after ? Fate::kDrop : Fate::kLeave;
        default:
            return age > limits.patience ? Fate::kGiveUp : Fate::kLeave;
    }
}

}  // namespace

PreparationPlan plan_preparation(
    const PreparationView& view, WallTime now, const PreparationLimits& limits) {
    PreparationPlan plan;
    std::set<PreparationTarget> busy;
    std::size_t running = 0;
    for (const PreparationPod& pod : view.pods) {
        busy.insert(pod.target);
        if (pod.deleting) {
            ++running;
            continue;
        }
        const bool wanted = view.wanted.contains(pod.target);
        const Fate fate = wanted ? fate_of(pod, now, limits) : Fate::kDrop;
        if (pod.phase == PodPhase::kFailed && wanted) {
            plan.failed.push_back(pod.target);
        } else if (fate == Fate::kFinish) {
            plan.finished.push_back(pod.target);
        } else if (fate == Fate::kGiveUp) {
            plan.failed.push_back(pod.target);
        }
        if (fate == Fate::kLeave) {
            running += pod.phase == PodPhase::kFailed ? 0 : 1;
        } else {
            plan.remove.push_back(pod.key);
        }
    }
    for (const PreparationTarget& target : view.wanted) {
        if (running >= limits.pods_at_once) {
            break;
        }
        if (!view.done.contains(target) && !busy.contains(target)) {
            plan.create.push_back(target);
            ++running;
        }
    }
    return plan;
}

std::string preparation_pod_name(const PreparationTarget& target) {
    return pod_name_of(
        "stoker-prepare", {target.node, target.node_uid, target.boot_id, target.host_path});
}

}  // namespace stoker::control
