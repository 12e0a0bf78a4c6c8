#include "operator/core/view/profile_book.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "common/base/saturating.h"
#include "operator/core/view/totals.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

// Range of probe ids for one job.
constexpr std::uint64_t kProbeIdsPerJob = 1 << 16;

// Fresh reports of the present attempt's ranks whose trainer has started.
std::vector<SidecarReport> ranks_of(
    const JobUse& use, const ReportIndex& reports, const Moment& now) {
    const std::string prefix = pod_prefix(use.job, use.job->status.attempt);
    std::vector<SidecarReport> result;
    for (const SidecarReport* report : reports.of_job(use.job->meta.uid)) {
        if (report->pod.starts_with(prefix) && is_fresh(*report, now)) {
            result.push_back(*report);
        }
    }
    return result;
}

// Reports of the leaders on these nodes, reduced to the job's datasets. A leader may be the sidecar
// of another job that reads the same data.
std::vector<SidecarReport> leaders_for(
    const JobUse& use, const std::vector<SidecarReport>& ranks, const ReportIndex& reports) {
    std::set<std::string> nodes;
    for (const SidecarReport& report : ranks) {
        nodes.insert(report.node);
    }
    std::set<std::string> uids;
    for (const ResolvedDataset& dataset : use.datasets->datasets) {
        uids.insert(dataset.uid);
    }
    std::vector<SidecarReport> result;
    const auto is_led = [&](const DatasetReport& dataset) {
        return dataset.leader && uids.contains(dataset.dataset_uid);
    };
    for (const std::string& node : nodes) {
        for (const SidecarReport* report : reports.on_node(node)) {
            if (std::ranges::any_of(report->datasets, is_led)) {
                SidecarReport& of_job = result.emplace_back(*report);
                std::erase_if(of_job.datasets, std::not_fn(is_led));
            }
        }
    }
    return result;
}

Bytes granted_to(const JobUse& use, const AllocationPlan& plan) {
    const ObjectKey key = use.job->meta.key();
    const auto found = std::ranges::lower_bound(plan.jobs, key, {}, &JobAllocation::job);
    return found == plan.jobs.end() || found->job != key ? Bytes::zero() : found->granted;
}

ProbeWish wish_of(const TrainingJob& job) {
    ProbeWish wish;
    const std::optional<ProfilingSpec>& spec = job.spec.cache.profiling;
    if (!spec) {
        return wish;
    }
    wish.is_wanted = spec->mode == "Measured";
    const std::int64_t steps = spec->steps.value_or(wish.batches);
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    wish.batches = static_cast<std::uint32_t>(std::clamp<std::int64_t>(steps, 1, kMax));
    if (spec->max_seconds) {
        wish.patience = saturated_seconds(*spec->max_seconds);
    }
    return wish;
}

}  // namespace

ProfileBook::Entry& ProfileBook::entry_of(const JobUse& use) {
    const Id id{use.job->meta.key(), use.job->meta.uid};
    const std::int64_t attempt = use.job->status.attempt;
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.attempt == attempt) {
        return found->second;
    }
    if (found != entries_.end()) {
        refused_before_ += found->second.profiler.refused();
    }
    const std::uint64_t first_id = next_probe_id_;
    next_probe_id_ += kProbeIdsPerJob;
    return entries_.insert_or_assign(id, Entry{attempt, JobProfiler{}, ProbeSchedule{first_id}})
        .first->second;
}

void ProfileBook::update(
    const ClusterView& cluster, const AllocationPlan& plan, const Moment& now) {
    std::set<Id> running;
    probes_.clear();
    const ReportIndex reports{cluster.reports};
    for (const JobUse& use : cluster.jobs) {
        if (use.is_active()) {
            running.insert({use.job->meta.key(), use.job->meta.uid});
            update_job(use, reports, plan, now);
        }
    }
    std::erase_if(entries_, [&](const auto& entry) {
        if (running.contains(entry.first)) {
            return false;
        }
        refused_before_ += entry.second.profiler.refused();
        return true;
    });
}

void ProfileBook::update_job(
    const JobUse& use, const ReportIndex& reports, const AllocationPlan& plan, const Moment& now) {
    Entry& entry = entry_of(use);
    const std::vector<SidecarReport> ranks = ranks_of(use, reports, now);
    const std::vector<SidecarReport> leaders = leaders_for(use, ranks, reports);
    entry.profiler.observe(
        {ranks,
         leaders,
         static_cast<std::size_t>(use.job->spec.trainer.node_count),
         granted_to(use, plan)});
    probe(entry, use, ranks, now);
}

void ProfileBook::probe(
    Entry& entry, const JobUse& use, const std::vector<SidecarReport>& ranks, const Moment& now) {
    const ProbeInput input{
        wish_of(use.job),
        entry.profiler.profile().method != ProfileMethod::kNone,
        entry.profiler.regime(),
        static_cast<std::size_t>(use.job->spec.trainer.node_count),
        ranks};
    const ProbeStep step = entry.probes.step(input, now.steady);
    if (step.benefit) {
        entry.profiler.take_measured(*step.benefit);
    }
    if (step.ask) {
        probes_[use.job->meta.key()] = *step.ask;
    }
}

std::map<ObjectKey, JobProfile> ProfileBook::profiles() const {
    std::map<ObjectKey, JobProfile> result;
    for (const auto& [id, entry] : entries_) {
        if (entry.profiler.profile().method != ProfileMethod::kNone) {
            result[id.key] = entry.profiler.profile();
        }
    }
    return result;
}

std::uint64_t ProfileBook::refused() const {
    std::uint64_t sum = refused_before_;
    for (const auto& [id, entry] : entries_) {
        sum += entry.profiler.refused();
    }
    return sum;
}

}  // namespace stoker::control
