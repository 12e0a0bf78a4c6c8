#include "operator/controllers/grants/terminating_jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "operator/controllers/gather.h"

namespace stoker::control {

namespace {

bool has_pod(const JobUse& use, const std::string& uid) {
    return std::ranges::any_of(use.pods, [&](const Pod& pod) { return pod.meta.uid == uid; });
}

}  // namespace

void TerminatingJobs::remember(const std::vector<JobUse>& jobs, const Moment& now) {
    std::set<std::string> present;
    for (const JobUse& use : jobs) {
        if (use.filler) {
            continue;
        }
        present.insert(use.job->meta.uid);
        jobs_.insert_or_assign(use.job->meta.uid, Known{use});
    }
    for (auto& [uid, known] : jobs_) {
        if (!present.contains(uid) && !known.gone_at) {
            known.gone_at = now.steady;
            known.use.job.edit().meta.deleting_since = now.wall;
        }
    }
}

void TerminatingJobs::watch_unknown(
    const std::vector<JobUse>& jobs, ClusterCache& cache, TimePoint now) {
    if (!began_at_) {
        began_at_ = now;
        std::set<ObjectKey> known;
        for (const JobUse& use : jobs) {
            for (const Pod& pod : use.pods) {
                known.insert(pod.meta.key());
            }
        }
        for (const auto& pod : cache.pods().store().list()) {
            if (!known.contains(pod->key)) {
                unknown_.insert(pod->key);
            }
        }
    }
    const bool has_expired = now - *began_at_ >= grace_;
    std::erase_if(unknown_, [&](const ObjectKey& key) {
        const auto pod = cache.pods().store().get(key);
        return has_expired || !pod || has_ended(pod->value) || pod->value.node_name.empty();
    });
}

void TerminatingJobs::add(
    ClusterView& cluster, ClusterCache& cache, SidecarRegistry& registry, const Moment& now) {
    remember(cluster.jobs, now);
    watch_unknown(cluster.jobs, cache, now.steady);
    std::erase_if(jobs_, [&](const auto& entry) {
        const Known& known = entry.second;
        if (!known.gone_at) {
            return false;
        }
        JobUse use = known.use;
        use.pods = shared(
            cache.pods().store().by_index(index::kTrainingJob, to_string(use.job->meta.key())));
        // Pods are compared by uid: a new TrainingJob of that name has pods with the same label.
        std::erase_if(use.pods, [&](const Pod& pod) { return !has_pod(known.use, pod.meta.uid); });
        if (use.pods.empty() || now.steady - *known.gone_at >= grace_) {
            return true;
        }
        for (SidecarReport& report : reports_on_datasets(use, registry)) {
            cluster.reports.push_back(std::move(report));
        }
        cluster.jobs.push_back(std::move(use));
        return false;
    });
}

}  // namespace stoker::control
