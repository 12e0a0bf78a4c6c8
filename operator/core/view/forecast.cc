#include "operator/core/view/forecast.h"

#include <algorithm>

#include <fmt/format.h>

#include "operator/core/view/guests.h"
#include "operator/core/workload/build_job.h"

namespace stoker::control {

namespace {

std::int64_t rank_count(const TrainerSpec& trainer) {
    return trainer.node_count * processes_per_node(trainer);
}

// The nodes of the attempt's live pods, by index; empty: not every index has a pod with a node.
std::vector<std::string> find_pod_nodes(const JobUse& use) {
    const TrainingJob& job = use.job;
    const std::string attempt = job_name(job, job.status.attempt);
    std::vector<std::string> nodes(static_cast<std::size_t>(job.spec.trainer.node_count));
    for (const Pod& pod : use.pods) {
        const std::optional<std::int64_t> index = rank_of(pod);
        if (index && *index >= 0 && *index < job.spec.trainer.node_count && !has_ended(pod) &&
            !pod.meta.deleting_since && job_name_of(pod) == attempt) {
            nodes[static_cast<std::size_t>(*index)] = pod.node_name;
        }
    }
    return std::ranges::find(nodes, "") == nodes.end() ? nodes : std::vector<std::string>{};
}

}  // namespace

Blocker find_forecast_blocker(const TrainingJob& job, const ResolvedDataset& dataset) {
    if (is_guest(job, dataset)) {
        return {
            "OtherNamespace",
            fmt::format(
                "Dataset {} is in namespace {}: only a job of that namespace decides where its "
                "samples are kept.",
                dataset.name,
                dataset.ns)};
    }
    if (!dataset.peers) {
        return {
            "PeersOff",
            fmt::format(
                "The nodes do not share the samples of dataset {} (spec.peers Off, or a volume).",
                dataset.name)};
    }
    if (job.spec.trainer.node_count < 2) {
        return {"OneNode", "The job has one node, which keeps all samples."};
    }
    if (rank_count(job.spec.trainer) > kForeseenRanksMax) {
        return {
            "TooManyRanks",
            fmt::format(
                "The job has {} ranks, and samples are placed by the reads of at most {}.",
                rank_count(job.spec.trainer),
                kForeseenRanksMax)};
    }
    return {};
}

bool has_read_otherwise(const TrainingJob& job) {
    const Condition* told = find_condition(job.status.conditions, kClairvoyantPlacement);
    return told != nullptr && told->reason == kReadsDiffer && !job.spec.suspend;
}

std::optional<Forecast> foresee(const JobUse& use, const ResolvedDataset& dataset) {
    const TrainingJob& job = use.job;
    if (!dataset.clairvoyant || !find_forecast_blocker(job, dataset).empty()) {
        return std::nullopt;
    }
    Forecast forecast;
    forecast.reads.job_uid = job.meta.uid;
    forecast.reads.order = dataset.clairvoyant->order;
    forecast.reads.seed = static_cast<std::uint64_t>(dataset.clairvoyant->seed);
    forecast.reads.drop_last = dataset.clairvoyant->drop_last;
    forecast.reads.epochs = static_cast<std::uint32_t>(job.spec.trainer.epochs);
    forecast.pod_nodes = find_pod_nodes(use);
    forecast.processes_per_pod = static_cast<std::uint32_t>(processes_per_node(job.spec.trainer));
    forecast.rank_count = rank_count(job.spec.trainer);
    forecast.attempt = job.status.attempt;
    return forecast;
}

std::optional<KnownReads> place_ranks(
    const Forecast& forecast, const std::vector<PeerMember>& members) {
    KnownReads reads = forecast.reads;
    for (const std::string& node : forecast.pod_nodes) {
        const auto member = std::ranges::lower_bound(members, node, {}, &PeerMember::node);
        if (member == members.end() || member->node != node) {
            return std::nullopt;
        }
        reads.rank_members.insert(
            reads.rank_members.end(),
            forecast.processes_per_pod,
            static_cast<std::uint32_t>(member - members.begin()));
    }
    return reads;
}

}  // namespace stoker::control
