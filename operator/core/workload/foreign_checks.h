#pragma once

#include <string>

#include "common/base/result.h"
#include "operator/api/foreign_pod.h"
#include "operator/api/training_job.h"

// Checks whether a pod of another controller can read through the cache. Part of
// foreign_spec(). Pure.
namespace stoker::control {

// kInvalidArgument with this sentence, which says what is wrong with the pod.
tl::unexpected<Error> refuse(std::string message);

// Whether an earlier call of the webhook has given the pod its cache. The API server calls a webhook
// again if a later one changes the pod.
bool is_injected(const ForeignPod& pod);

// The rules for the pod's own settings and volumes.
Status check_pod(const ForeignPod& pod);

// The rules of a TrainingJob, and for the reader's own volumes those of a podTemplate's. The pod has
// passed check_pod().
Status check_job(const ForeignPod& pod, TrainingJob job);

}  // namespace stoker::control
