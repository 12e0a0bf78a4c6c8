#include "operator/core/status/judge_losses.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "operator/core/spec/contract_values.h"

namespace stoker::control {

std::optional<Condition> judge_losses(const TrainingJobSpec& spec) {
    const auto dataset = std::ranges::find_if(spec.datasets, is_icache);
    if (spec.trainer.node_count < 2 || dataset == spec.datasets.end()) {
        return std::nullopt;
    }
    const auto nodes = static_cast<double>(spec.trainer.node_count);
    const double warmup = number_of(*dataset, "warmupEpochs");
    return fails(
        "OwnNodeOnly",
        fmt::format(
            "Dataset {} has contract Importance on {} nodes, and losses do not travel between "
            "nodes: after the {} full epochs at the start each node has no loss for about {:.0f}% "
            "of the samples and reads those in every epoch. Importance saves most on one node.",
            dataset->name,
            spec.trainer.node_count,
            warmup,
            100 * std::pow(1 - 1 / nodes, warmup)));
}

}  // namespace stoker::control
