#include "operator/core/view/measured_demand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "operator/core/view/guests.h"
#include "operator/core/view/totals.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

using Place = std::pair<std::string, std::string>;  // node, dataset uid

// Resamples the masses of a RankSketch to `count` parts with sum 1. Empty if the sum is 0.
std::vector<double> spread(const std::vector<float>& masses, std::size_t count) {
    const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
    std::vector<double> result;
    for (std::size_t i = 0; sum > 0 && i < count; ++i) {
        const std::size_t at = i * masses.size() / count;
        // Number of parts that fall into this mass.
        const std::size_t begin = (at * count + masses.size() - 1) / masses.size();
        const std::size_t end = ((at + 1) * count + masses.size() - 1) / masses.size();
        result.push_back(masses[at] / sum / static_cast<double>(end - begin));
    }
    return result;
}

// Sketches with the same RankSketch::revision are equal, so the order of the reports does not
// matter.
bool is_newer(const RankSketch& next, const RankSketch* before) {
    return !next.masses.empty() &&
           (before == nullptr ||
            std::tie(before->revision, before->masses) < std::tie(next.revision, next.masses));
}

// The newest of `before` and the report's sketches of how the job uses the dataset; nullptr: none.
const RankSketch* newest_sketch(
    const SidecarReport& report,
    const std::string& dataset_uid,
    const std::string& job,
    const RankSketch* before) {
    for (const DatasetReport& dataset : report.datasets) {
        for (const RankSketch& sketch : dataset.sketches) {
            if (dataset.dataset_uid == dataset_uid && sketch.job_uid == job &&
                is_newer(sketch, before)) {
                before = &sketch;
            }
        }
    }
    return before;
}

// The job's key in its leaders' reports, by dataset uid.
std::map<std::string, std::string> job_keys(const JobUse& use) {
    std::map<std::string, std::string> keys;
    for (const ResolvedDataset& dataset : use.datasets->datasets) {
        keys.emplace(dataset.uid, job_key_at(use, dataset));
    }
    return keys;
}

// One job's use of a dataset on one node.
struct Reader {
    std::string key;
    double weight = 1;           // of the TrainingJob
    std::optional<double> rate;  // bytes/s that the cache could speed up; nullopt: unknown
};

// Bytes/s that the job would read without waiting for data. nullopt: the profile has no verdict; 0:
// the job never waits, so the cache cannot speed it up.
std::optional<double> rate_by_cache(const ClusterView& cluster, const JobUse& use) {
    const JobProfile* profile = cluster.judged_profile(use.job->meta.key());
    if (profile == nullptr) {
        return std::nullopt;
    }
    return profile->verdict == ProfileVerdict::kComputeBound ? 0 : profile->ingest_rate;
}

// Rate assumed for a job without a verdict: the mean of the jobs that wait for data; 1 if there is
// none.
double usual_rate(const std::vector<Reader>& readers) {
    double sum = 0;
    double count = 0;
    for (const Reader& reader : readers) {
        sum += reader.rate.value_or(0);
        count += reader.rate.value_or(0) > 0 ? 1 : 0;
    }
    return count == 0 ? 1 : sum / count;
}

std::vector<JobWeight> weights_of(const std::vector<Reader>& readers) {
    std::vector<JobWeight> weights;
    for (const Reader& reader : readers) {
        weights.push_back({reader.key, reader.weight * reader.rate.value_or(usual_rate(readers))});
    }
    std::ranges::sort(weights, {}, &JobWeight::job_uid);
    return weights;
}

}  // namespace

std::optional<double> last_epoch_progress(
    const JobUse& use, const ReportIndex& reports, const Moment& now) {
    const std::string prefix = pod_prefix(use.job, use.job->status.attempt);
    const auto epochs =
        static_cast<std::uint64_t>(std::max<std::int64_t>(use.job->spec.trainer.epochs, 0));
    std::int64_t ranks = 0;
    double least = 1;
    for (const SidecarReport* report : reports.of_job(use.job->meta.uid)) {
        if (!report->pod.starts_with(prefix)) {
            continue;
        }
        const TrainerReport& trainer = report->trainer;
        if (!is_fresh(*report, now) || epochs == 0 || trainer.epoch_samples == 0 ||
            trainer.epoch + 1 < epochs) {
            return std::nullopt;
        }
        ++ranks;
        least = std::min(
            least,
            static_cast<double>(trainer.epoch_position) /
                static_cast<double>(trainer.epoch_samples));
    }
    return ranks < use.job->spec.trainer.node_count ? std::nullopt : std::optional(least);
}

std::vector<float> measured_sketch(
    const JobUse& use,
    const std::string& dataset_uid,
    const ReportIndex& reports,
    const Moment& now) {
    std::map<std::string, const RankSketch*> newest;  // by node: two sidecars may claim to lead
    const std::map<std::string, std::string> keys = job_keys(use);
    const auto key = keys.find(dataset_uid);
    const std::string& job = key == keys.end() ? use.job->meta.uid : key->second;
    for (const std::string& node : use.live_nodes()) {
        const RankSketch*& here = newest[node];
        for (const SidecarReport* report : reports.on_node(node)) {
            if (is_fresh(*report, now)) {
                here = newest_sketch(*report, dataset_uid, job, here);
            }
        }
    }
    std::vector<double> sum(kRankSketchSizeMax, 0.0);
    bool any = false;
    for (const auto& [node, sketch] : newest) {
        const std::vector<double> part =
            sketch == nullptr ? std::vector<double>{} : spread(sketch->masses, sum.size());
        any = any || !part.empty();
        for (std::size_t i = 0; i < part.size(); ++i) {
            sum[i] += part[i];
        }
    }
    return any ? std::vector<float>(sum.begin(), sum.end()) : std::vector<float>{};
}

void weigh_jobs(const ClusterView& cluster, std::vector<Grant>& grants) {
    std::map<Place, std::vector<Reader>> readers;
    for (const JobUse& use : cluster.jobs) {
        if (!use.is_active()) {
            continue;
        }
        const std::set<std::string> nodes = use.live_nodes();
        const auto weight = static_cast<double>(use.job->spec.cache.weight);
        const std::optional<double> rate = rate_by_cache(cluster, use);
        const auto here = rate ? std::optional{*rate / static_cast<double>(nodes.size())} : rate;
        for (const auto& [uid, key] : job_keys(use)) {
            for (const std::string& node : nodes) {
                readers[{node, uid}].push_back({key, weight, here});
            }
        }
    }
    for (Grant& grant : grants) {
        const auto found = readers.find({grant.node, grant.dataset_uid});
        if (found != readers.end() && found->second.size() > 1) {
            grant.weights = weights_of(found->second);
        }
    }
}

}  // namespace stoker::control
