#include "operator/api/label_selector.h"

#include <algorithm>

namespace stoker::control {

namespace {

bool holds(const LabelRequirement& requirement, const TextMap& labels) {
    const auto label = labels.find(requirement.key);
    const bool exists = label != labels.end();
    const bool listed =
        exists && std::ranges::find(requirement.values, label->second) != requirement.values.end();
    switch (requirement.op) {
        case LabelOperator::kIn:
            return listed;
        case LabelOperator::kNotIn:
            return !listed;
        case LabelOperator::kExists:
            return exists;
        case LabelOperator::kDoesNotExist:
            return !exists;
    }
    return false;
}

}  // namespace

bool selects(const LabelSelector& selector, const TextMap& labels) {
    const bool has_labels = std::ranges::all_of(selector.match_labels, [&](const auto& wanted) {
        const auto label = labels.find(wanted.first);
        return label != labels.end() && label->second == wanted.second;
    });
    return has_labels && std::ranges::all_of(
                             selector.match_expressions,
                             [&](const LabelRequirement& it) { return holds(it, labels); });
}

}  // namespace stoker::control
