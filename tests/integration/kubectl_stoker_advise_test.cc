// `kubectl stoker advise` and `report` as processes against an API server on loopback.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/kubectl_stoker_fixture.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {
namespace {

// Creates a pod in namespace ml; an empty `job`: of no TrainingJob.
void add_pod(FakeCluster& cluster, const std::string& name, const std::string& job) {
    const std::string labels =
        job.empty() ? "{}" : fmt::format(R"({{"stoker.dev/training-job":"{}"}})", job);
    const auto answer = cluster.api().create(
        kinds::kPods,
        "ml",
        fmt::format(
            R"({{"metadata":{{"name":"{}","labels":{}}},"spec":{{"containers":[]}}}})",
            name,
            labels));
    STOKER_CHECK(answer.status == 201, answer.body.c_str());
}

TEST_F(KubectlStoker, AdviseFromATraceNeedsNoKubectl) {
    plugin.remove_kubectl();
    const TempFolder folder;
    std::ofstream{folder.path() + "/trace"} << "1 a 10\n2 b 10\n3 a 10\n4 b 10\n";
    const Answer answer = plugin.run("advise --trace " + folder.path() + "/trace");
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("4 reads of 2 samples"));
    EXPECT_EQ(plugin.run("advise --trace /nonexistent").status, 1);
}

TEST_F(KubectlStoker, AdvisesAJobAndItsPods) {
    lead_with(snapshot());
    add_pod(cluster, "mnist-0", "mnist");
    add_pod(cluster, "web-0", "");
    const Answer job = plugin.run("advise tj/mnist");
    EXPECT_EQ(job.status, 0) << job.err;
    EXPECT_THAT(job.out, HasSubstr("is worth it: an epoch takes 32 s without a cache"));
    EXPECT_EQ(plugin.run("advise pod/mnist-0").out, job.out);
    const Answer stranger = plugin.run("advise pod/web-0");
    EXPECT_EQ(stranger.status, 1);
    EXPECT_THAT(stranger.err, HasSubstr("belongs to no TrainingJob"));
}

TEST_F(KubectlStoker, ReportIsAFile) {
    lead_with(snapshot());
    add_pod(cluster, "mnist-0", "mnist");
    add_pod(cluster, "web-0", "");
    const TempFolder folder;
    const std::string path = folder.path() + "/report.html";
    const Answer answer = plugin.run("report tj/mnist -o " + path);
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_EQ(answer.out, "");
    const std::string page = plugin.run("report tj/mnist").out;
    EXPECT_THAT(page, HasSubstr("<h1>TrainingJob ml/mnist</h1>"));
    EXPECT_THAT(page, HasSubstr("mnist-0"));
    EXPECT_THAT(page, Not(HasSubstr("web-0")));
    EXPECT_EQ(std::filesystem::exists(path), true);
    EXPECT_EQ(plugin.run("report tj/mnist -o " + folder.path()).status, 1);
}

TEST_F(KubectlStoker, ReportSaysWhatTheUserMayNotList) {
    lead_with(snapshot());
    Fault forbidden;
    forbidden.target_contains = "/events";
    forbidden.times = -1;
    forbidden.status = 403;
    forbidden.body = R"({"kind":"Status","reason":"Forbidden","message":"no events"})";
    cluster.api().add_fault(forbidden);
    const Answer answer = plugin.run("report tj/mnist");
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("You may not list Events; they are left out."));
}

}  // namespace
}  // namespace stoker::test
