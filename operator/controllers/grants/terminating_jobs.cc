#include "operator/controllers/grants/terminating_jobs.h"

#include <utility>
#include <vector>

#include "operator/controllers/gather.h"

namespace stoker::control {

void TerminatingJobs::remember(const std::vector<JobUse>& jobs, const Moment& now) {
    std::set<std::string> present;
    for (const JobUse& use : jobs) {
        if (use.filler) {
            continue;
        }
        present.insert(use.job.meta.uid);
        Known known{{use.job, use.datasets, use.pool, {}}, {}};
        known.use.job.meta.deleting_since = now.wall;
        for (const Pod& pod : use.pods) {
            known.pod_uids.insert(pod.meta.uid);
        }
        jobs_.insert_or_assign(use.job.meta.uid, std::move(known));
    }
    for (auto& [uid, known] : jobs_) {
        if (!present.contains(uid) && !known.gone_at) {
            known.gone_at = now.steady;
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
        // By uid: a new TrainingJob of that name has pods with the same label.
        for (const auto& pod :
             cache.pods().store().by_index(index::kTrainingJob, to_string(use.job.meta.key()))) {
            if (known.pod_uids.contains(pod->value.meta.uid)) {
                use.pods.push_back(pod->value);
            }
        }
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
