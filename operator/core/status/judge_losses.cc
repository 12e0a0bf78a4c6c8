#include "operator/core/status/judge_losses.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr std::string_view kImportance = contract_member(Contract::kImportance);

ContractParameters parameters_of(const JobDataset& dataset) {
    const auto found = dataset.parameters.find(Contract::kImportance);
    return found == dataset.parameters.end() ? ContractParameters{} : found->second;
}

bool samples_by_loss(const JobDataset& dataset) {
    const auto words = parameters_of(dataset).words;
    const auto family = words.find("family");
    return dataset.contract == Contract::kImportance &&
           (family == words.end() || family->second == "ICache");
}

double warmup_epochs(const JobDataset& dataset) {
    const auto numbers = parameters_of(dataset).numbers;
    const auto given = numbers.find("warmupEpochs");
    return given == numbers.end() ? domain::standard_of(kImportance, "warmupEpochs")
                                  : given->second;
}

}  // namespace

std::optional<Condition> judge_losses(const TrainingJobSpec& spec) {
    const auto dataset = std::ranges::find_if(spec.datasets, samples_by_loss);
    if (spec.trainer.node_count < 2 || dataset == spec.datasets.end()) {
        return std::nullopt;
    }
    const auto nodes = static_cast<double>(spec.trainer.node_count);
    const double warmup = warmup_epochs(*dataset);
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
