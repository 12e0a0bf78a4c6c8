#include "operator/core/status/judge_losses.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "operator/core/spec/contract_values.h"

namespace stoker::control {

std::optional<Condition> judge_losses(
    const TrainingJobSpec& spec, const std::vector<ResolvedDataset>& resolved) {
    const auto is_shared = [&resolved](const JobDataset& dataset) {
        const auto found = std::ranges::find(resolved, dataset.name, &ResolvedDataset::name);
        return found == resolved.end() || found->peers;
    };
    const auto dataset = std::ranges::find_if(spec.datasets, [&](const JobDataset& it) {
        return it.contract == Contract::kImportance && !is_shared(it);
    });
    if (spec.trainer.node_count < 2 || dataset == spec.datasets.end()) {
        return std::nullopt;
    }
    const auto nodes = static_cast<double>(spec.trainer.node_count);
    const double warmup = number_of(*dataset, "warmupEpochs");
    return fails(
        "OwnNodeOnly",
        fmt::format(
            "Dataset {} has contract Importance on {} nodes, and nodes tell each other losses only "
            "where they share samples (spec.peers Auto, no volume): after the {} at "
            "the start each node has no loss for about {:.0f}% of the samples and reads those in "
            "every epoch.",
            dataset->name,
            spec.trainer.node_count,
            warmup == 1 ? "full epoch" : fmt::format("{} full epochs", warmup),
            100 * std::pow(1 - 1 / nodes, warmup)));
}

}  // namespace stoker::control
