#include "operator/webhook/admission_review.h"

#include <string>

#include <gtest/gtest.h>

#include "operator/kube/access.h"

namespace stoker::control {
namespace {

constexpr const char* kReview =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
    "uid":"u-1","operation":"CREATE","namespace":"team","dryRun":true,
    "resource":{"group":"","version":"v1","resource":"pods"},"object":{"metadata":{}}}})";

std::string with(std::string text, const std::string& old, const std::string& replacement) {
    return text.replace(text.find(old), old.size(), replacement);
}

TEST(AdmissionReview, ReadsTheCreationOfAPod) {
    const auto request = read_admission_request(kReview);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->uid, "u-1");
    EXPECT_EQ(request->ns, "team");
    EXPECT_TRUE(request->dry_run);
    EXPECT_EQ(request->pod.text(), R"({"metadata":{}})");
}

TEST(AdmissionReview, RefusesMalformedAndOtherRequests) {
    for (const std::string& text :
         {std::string{},
          std::string{"[]"},
          std::string{"{"},
          with(kReview, "CREATE", "UPDATE"),
          with(kReview, "admission.k8s.io/v1", "admission.k8s.io/v2"),
          with(kReview, R"("resource":"pods")", R"("resource":"jobs")"),
          with(kReview, R"("uid":"u-1",)", ""),
          with(kReview, R"({"metadata":{}})", "null"),
          with(kReview, R"("namespace":"team")", R"("namespace":7)"),
          with(kReview, R"("namespace":"team")", R"("subResource":"exec","namespace":"team")")}) {
        const auto request = read_admission_request(text);
        ASSERT_FALSE(request) << text;
        EXPECT_EQ(request.error().code, ErrorCode::kInvalidArgument) << text;
    }
}

TEST(AdmissionAnswer, AllowsWithOrWithoutAPatch) {
    EXPECT_EQ(
        admission_answer("u-1", std::vector<Json>{}, {}),
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u-1"}})");
    const Json patch = Json::parse(R"([{"op":"add"}])").value();
    const Json answer = Json::parse(admission_answer("u-1", patch, {"careful"})).value();
    EXPECT_NE(answer.text().find(R"("patchType":"JSONPatch")"), std::string::npos);
    EXPECT_NE(answer.text().find(base64_encode(patch.text())), std::string::npos);
    EXPECT_NE(answer.text().find(R"("warnings":["careful"])"), std::string::npos);
}

}  // namespace
}  // namespace stoker::control
