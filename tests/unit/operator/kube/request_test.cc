#include "operator/kube/request.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

Json parse(std::string_view text) {
    return Json::parse(text).value();
}

TEST(GetRequest, BuildsCoreGroupedAndClusterScopedPaths) {
    EXPECT_EQ(get_request(kinds::kPods, {"demo", "a"}).target, "/api/v1/namespaces/demo/pods/a");
    EXPECT_EQ(
        get_request(kinds::kJobs, {"demo", "a"}).target, "/apis/batch/v1/namespaces/demo/jobs/a");
    EXPECT_EQ(get_request(kinds::kNodes, {"", "n1"}).target, "/api/v1/nodes/n1");
    EXPECT_EQ(
        get_request(kinds::kCachePools, {"", "fast"}).target,
        "/apis/stoker.dev/v1alpha1/cachepools/fast");
}

TEST(ListRequest, SendsOnlySetParameters) {
    EXPECT_EQ(list_request(kinds::kPods, {}).target, "/api/v1/pods");
    ListParams params;
    params.scope = {"demo", "app=x,tier!=y", "spec.nodeName=n1"};
    params.resource_version = "0";
    params.limit = 500;
    const ApiRequest request = list_request(kinds::kPods, params);
    EXPECT_EQ(
        request.target,
        "/api/v1/namespaces/demo/pods?labelSelector=app%3Dx%2Ctier%21%3Dy"
        "&fieldSelector=spec.nodeName%3Dn1&limit=500&resourceVersion=0");
    EXPECT_EQ(request.traffic, Traffic::kList);
}

TEST(ListRequest, OmitsTheVersionWithAContinueToken) {
    ListParams params;
    params.resource_version = "12";
    params.limit = 2;
    params.continue_token = "abc==";
    EXPECT_EQ(list_request(kinds::kPods, params).target, "/api/v1/pods?limit=2&continue=abc%3D%3D");
}

TEST(WatchRequest, RequestsBookmarksFromAVersion) {
    WatchParams params;
    params.resource_version = "12";
    params.timeout_seconds = 400;
    const ApiRequest request = watch_request(kinds::kDatasets, params);
    EXPECT_EQ(
        request.target,
        "/apis/stoker.dev/v1alpha1/datasets?watch=1&allowWatchBookmarks=true&resourceVersion=12"
        "&timeoutSeconds=400");
    EXPECT_EQ(request.traffic, Traffic::kWatch);
}

TEST(ApplyRequest, ForcesAsItsFieldManager) {
    const ApiRequest request = apply_request(
        kinds::kTrainingJobs,
        {"demo", "mnist"},
        parse(R"({"kind":"TrainingJob"})"),
        {"stoker-operator", "status"});
    EXPECT_EQ(request.verb, Verb::kPatch);
    EXPECT_EQ(
        request.target,
        "/apis/stoker.dev/v1alpha1/namespaces/demo/trainingjobs/mnist/status"
        "?fieldManager=stoker-operator&force=true");
    EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
    EXPECT_EQ(request.body, R"({"kind":"TrainingJob"})");
    EXPECT_EQ(request.what, "applying status of trainingjobs demo/mnist");
}

TEST(CreateRequest, RequestsStrictFieldValidation) {
    const Json body = parse(R"({"kind":"Job","metadata":{"name":"a"}})");
    EXPECT_EQ(
        create_request(kinds::kJobs, "demo", body).target,
        "/apis/batch/v1/namespaces/demo/jobs?fieldValidation=Strict");
    EXPECT_EQ(
        apply_request(kinds::kJobs, {"demo", "a"}, body, {"stoker"}).target,
        "/apis/batch/v1/namespaces/demo/jobs/a"
        "?fieldManager=stoker&force=true&fieldValidation=Strict");
}

TEST(PatchRequest, SetsTheContentTypeOfThePatch) {
    const Json body = parse("[]");
    EXPECT_EQ(
        patch_request(kinds::kPods, {"d", "a"}, body, PatchType::kMerge).content_type,
        "application/merge-patch+json");
    EXPECT_EQ(
        patch_request(kinds::kPods, {"d", "a"}, body, PatchType::kJson).content_type,
        "application/json-patch+json");
}

TEST(DeleteRequest, CarriesPreconditionsAndPropagation) {
    DeleteParams params;
    params.uid = "u1";
    params.resource_version = "9";
    params.propagation = Propagation::kForeground;
    params.grace_seconds = 0;
    const ApiRequest request = delete_request(kinds::kJobs, {"demo", "a"}, params);
    EXPECT_EQ(request.verb, Verb::kDelete);
    EXPECT_EQ(
        parse(request.body),
        parse(R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground",
                  "gracePeriodSeconds":0,"preconditions":{"uid":"u1","resourceVersion":"9"}})"));
    EXPECT_EQ(
        parse(delete_request(kinds::kJobs, {"demo", "a"}, {}).body),
        parse(R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})"));
}

TEST(TokenReviewRequest, PutsTokenAndAudiencesIntoTheBody) {
    const ApiRequest request = token_review_request("tok\"en", {"stoker.dev"});
    EXPECT_EQ(request.target, "/apis/authentication.k8s.io/v1/tokenreviews?fieldValidation=Strict");
    EXPECT_EQ(
        parse(request.body), parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",
                  "spec":{"token":"tok\"en","audiences":["stoker.dev"]}})"));
    EXPECT_EQ(request.what.find("tok"), request.what.find("token")) << "no secrets in log lines";
}

TEST(AccessReviewRequest, AsksForANonResourcePath) {
    const ApiRequest request = access_review_request("ann", {"ml", "all"}, "get", "/debug/x");
    EXPECT_EQ(
        request.target,
        "/apis/authorization.k8s.io/v1/subjectaccessreviews?fieldValidation=Strict");
    EXPECT_EQ(
        parse(request.body),
        parse(R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",
                  "spec":{"user":"ann","groups":["ml","all"],
                          "nonResourceAttributes":{"verb":"get","path":"/debug/x"}}})"));
}

TEST(TokenRequest, IsForOneAudienceOfOneAccount) {
    const ApiRequest request = token_request({"stoker-system", "a/b"}, "debug.stoker.dev", 600);
    EXPECT_EQ(request.target, "/api/v1/namespaces/stoker-system/serviceaccounts/a%2Fb/token");
    EXPECT_EQ(
        parse(request.body),
        parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",
                  "spec":{"audiences":["debug.stoker.dev"],"expirationSeconds":600}})"));
}

TEST(ValidateKey, RejectsNamesThatChangeThePath) {
    EXPECT_TRUE(validate_key(kinds::kPods, {"demo", "a.b-c"}));
    EXPECT_TRUE(validate_key(kinds::kNodes, {"", "n1"}));
    for (const char* name : {"", ".", "..", "a/b", "%2e%2e"}) {
        EXPECT_FALSE(validate_key(kinds::kPods, {"demo", name})) << name;
        EXPECT_FALSE(validate_key(kinds::kPods, {name, "a"})) << name;
    }
    EXPECT_FALSE(validate_key(kinds::kNodes, {"demo", "n1"}));
}

TEST(PercentEncode, LeavesOnlyUnreservedCharacters) {
    EXPECT_EQ(percent_encode("aZ9-._~"), "aZ9-._~");
    EXPECT_EQ(percent_encode("a b+c/ä?&"), "a%20b%2Bc%2F%C3%A4%3F%26");
}

}  // namespace
}  // namespace stoker::control
