#pragma once

#include <string>
#include <vector>

#include "operator/api/dataset.h"
#include "operator/api/job.h"
#include "operator/api/pod.h"
#include "operator/core/spec/make_condition.h"

// Plans the packing Job of one Dataset and computes what its status says (docs/adr/0029). Pure.
namespace stoker::control {

struct PackingView {
    Dataset dataset;
    std::vector<Job> jobs;  // with the Dataset's kPackingLabel
    std::vector<Pod> pods;  // likewise
    std::string refusal;    // why the API server refused the Job; empty: it did not
    std::string diagnosis;  // why the Job's pods do not start; empty: nothing is known
};

struct PackingPlan {
    bool create = false;      // the Job of packing_job_name()
    std::vector<Job> remove;  // with their pods

    bool operator==(const PackingPlan&) const = default;
};

// Plans one Job (packing_job_name()) while the Dataset is valid and not packed; an ended Job stays.
// Jobs built from another spec are removed, and the next one is not created before they and their
// pods are gone: two runs at once could overwrite each other. Jobs of other owners are left alone.
PackingPlan plan_packing(const PackingView& view);

struct PackingOutcome {
    DatasetPackingStatus status;
    Condition packed;  // kPacked, without a type

    bool operator==(const PackingOutcome&) const = default;
};

// Precondition: the Dataset has spec.packing.
PackingOutcome judge_packing(const PackingView& view);

}  // namespace stoker::control
