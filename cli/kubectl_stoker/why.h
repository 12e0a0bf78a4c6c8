#pragma once

#include <optional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/core/allocation/explain_job.h"
#include "operator/core/allocation/snapshot.h"

namespace stoker::cli {

// What `why` knows of a job. Without an explanation (no right to ask the operator, or no operator)
// the status must do.
struct WhyFacts {
    control::TrainingJob job;
    std::optional<control::JobExplanation> explanation;
    control::AllocationView view;  // that it was decided from
    Duration age{};                // of the decision
    std::string version;           // of the operator
};

// One screen. Pure.
std::string why_text(const WhyFacts& facts);
std::string why_json(const WhyFacts& facts);

}  // namespace stoker::cli
