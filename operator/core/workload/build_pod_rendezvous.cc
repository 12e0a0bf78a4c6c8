#include <fmt/format.h>

#include "operator/core/workload/build_pod.h"

namespace stoker::control {

namespace {

constexpr std::string_view kRankField =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";

}  // namespace

std::vector<EnvVar> rendezvous_env(const TrainingJob& job, std::int64_t attempt) {
    const std::string address = fmt::format("{}-0.{}", job_name(job, attempt), service_name(job));
    const std::string port = std::to_string(kRendezvousPort);
    const std::int64_t processes = processes_per_node(job.spec.trainer);
    const std::string nodes = std::to_string(job.spec.trainer.node_count);
    std::vector<EnvVar> result = {
        {"PET_NNODES", nodes, {}},
        {"PET_NPROC_PER_NODE", std::to_string(processes), {}},
        {"PET_NODE_RANK", "", from_field(kRankField)},
        {"PET_MASTER_ADDR", address, {}},
        {"PET_MASTER_PORT", port, {}},
        {"MASTER_ADDR", address, {}},
        {"MASTER_PORT", port, {}},
        {"PYTHONUNBUFFERED", "1", {}}};
    if (processes == 1) {
        result.push_back({"WORLD_SIZE", nodes, {}});
        result.push_back({"RANK", "", from_field(kRankField)});
    }
    return result;
}

}  // namespace stoker::control
