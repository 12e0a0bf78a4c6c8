#pragma once

#include <string>

#include "common/base/result.h"
#include "operator/api/foreign_pod.h"
#include "operator/api/training_job.h"

// Checks whether a pod of another controller can read through the cache. Part of
// foreign_spec(). Pure.
namespace stoker::control {

// The error kInvalidArgument with `message`, a sentence that says what is wrong with the pod.
tl::unexpected<Error> refuse(std::string message);

// Whether an earlier call of the webhook has given the pod its cache. The API server calls a webhook
// again if a later one changes the pod.
bool is_injected(const ForeignPod& pod);

// The rules for the pod's own settings and volumes.
Status check_pod(const ForeignPod& pod);

// Applies the rules of a TrainingJob, and to the reading container's own volumes the rules of a
// podTemplate. Precondition: the pod has passed check_pod().
Status check_job(const ForeignPod& pod, TrainingJob job);

}  // namespace stoker::control
