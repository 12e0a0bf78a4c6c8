#pragma once

#include "tests/unit/operator/core/make_training_job.h"

// A job whose reads are known before it begins.
namespace stoker::control {

// The view of make_running_view() with placement Clairvoyant: 3 epochs, a pod on n1 and one on n2,
// two ranks in each.
inline TrainingJobView make_clairvoyant_view(std::int64_t attempt = 1) {
    TrainingJobView view = make_running_view(attempt);
    view.job.spec.trainer.epochs = 3;
    view.job.spec.trainer.processes_per_node = "2";
    view.job.spec.datasets[0].placement = SamplePlacement::kClairvoyant;
    view.job.spec.datasets[0].clairvoyant = {ReadOrder::kStoker, 7, true};
    view.datasets = resolve_datasets(view.job, {make_dataset()});
    return view;
}

// Its reads in a group of n1 and n2.
inline KnownReads make_reads() {
    return {"uid-resnet", ReadOrder::kStoker, 7, true, 3, {0, 0, 1, 1}};
}

}  // namespace stoker::control
