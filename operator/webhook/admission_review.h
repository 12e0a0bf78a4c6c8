#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/api/json.h"

// AdmissionReview of admission.k8s.io/v1, the webhook's protocol. Pure.
namespace stoker::control {

// The creation of a pod.
struct AdmissionRequest {
    std::string uid;  // repeated in the answer
    std::string ns;   // a pod of a template has no namespace of its own yet
    bool dry_run = false;
    Json pod;
};

// kInvalidArgument: not a review of a pod's creation.
Result<AdmissionRequest> read_admission_request(std::string_view body);

// An answer that allows the pod with this JSON Patch (an empty list: as it is). kubectl prints the
// warnings.
std::string admission_answer(
    const std::string& uid, const Json& patch, const std::vector<std::string>& warnings);

}  // namespace stoker::control
