#include "operator/webhook/admission_review.h"

#include <utility>

#include "operator/api/json_reader.h"
#include "operator/kube/access.h"

namespace stoker::control {

namespace {

constexpr const char* kReviewVersion = "admission.k8s.io/v1";

}  // namespace

Result<AdmissionRequest> read_admission_request(std::string_view body) {
    STOKER_TRY(const Json review, Json::parse(body));
    AdmissionRequest result;
    bool is_creation = false;
    STOKER_TRY_VOID(read_json(review, [&](const JsonReader& root) {
        const JsonReader request = root.object("request");
        result.uid = request.text("uid");
        result.ns = request.text("namespace");
        result.dry_run = request.flag("dryRun");
        result.pod = request.raw("object");
        is_creation = root.text("apiVersion") == kReviewVersion &&
                      request.text("operation") == "CREATE" &&
                      request.object("resource").text("resource") == "pods" &&
                      request.text("subResource").empty();
    }));
    if (!is_creation || result.uid.empty() || result.ns.empty() || result.pod.empty()) {
        return fail(ErrorCode::kInvalidArgument, "not a review of a pod's creation");
    }
    return result;
}

std::string admission_answer(
    const std::string& uid, const Json& patch, const std::vector<std::string>& warnings) {
    std::vector<JsonMember> response = {{"uid", uid}, {"allowed", true}, {"warnings", warnings}};
    if (!patch.empty()) {
        response.push_back({"patchType", "JSONPatch"});
        response.push_back({"patch", base64_encode(patch.text())});
    }
    return json_object({{"apiVersion", kReviewVersion},
                        {"kind", "AdmissionReview"},
                        {"response", json_object(response)}})
        .text();
}

}  // namespace stoker::control
