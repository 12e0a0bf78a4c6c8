#pragma once

#include <string>
#include <vector>

#include "operator/api/choices.h"
#include "operator/api/meta.h"

// Kubernetes' label selector as a value.
namespace stoker::control {

struct LabelRequirement {
    std::string key;
    LabelOperator op = LabelOperator::kIn;
    std::vector<std::string> values;  // of In and NotIn

    bool operator==(const LabelRequirement&) const = default;
};

// All requirements must hold; an empty selector selects everything.
struct LabelSelector {
    TextMap match_labels;
    std::vector<LabelRequirement> match_expressions;

    bool operator==(const LabelSelector&) const = default;
};

// Kubernetes' semantics: NotIn and DoesNotExist hold if the label is missing.
bool selects(const LabelSelector& selector, const TextMap& labels);

}  // namespace stoker::control
