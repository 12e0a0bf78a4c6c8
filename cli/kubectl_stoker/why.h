#pragma once

#include <optional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/core/allocation/explain_job.h"
#include "operator/core/allocation/snapshot.h"

namespace stoker::cli {

// Input of `why`. Without an explanation (no right to ask the operator, or no operator) the text
// comes from the status.
struct WhyFacts {
    control::TrainingJob job;
    std::optional<control::JobExplanation> explanation;
    control::AllocationView view;  // the planner's input
    Duration age{};                // of the plan
    std::string version;           // of the operator
};

// The text of `why`: one screen. Pure.
std::string why_text(const WhyFacts& facts);
std::string why_json(const WhyFacts& facts);

}  // namespace stoker::cli
