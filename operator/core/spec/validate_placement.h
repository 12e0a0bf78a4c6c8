#pragma once

#include "operator/api/training_job.h"
#include "operator/core/spec/field_checks.h"

namespace stoker::control {

// Complains about datasets with placement Clairvoyant whose reads cannot be known before the job
// begins. Pure.
void check_placements(const TrainingJobSpec& spec, Complaints& complaints);

}  // namespace stoker::control
