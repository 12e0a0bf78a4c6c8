// A real operator that watches only some namespaces.
#include <fmt/format.h>

#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using control::ObjectKey;

class OperatorNamespaces : public OperatorTest {
protected:
    OperatorNamespaces() {
        RunningOperator::Options options;
        options.api_server = cluster.api().url();
        options.watch_namespaces = "ml, vision";
        operator_.reset();
        before_ = cluster.api().seen().size();
        operator_ = std::make_unique<RunningOperator>(options);
    }

    void add_job(const std::string& ns, const std::string& name) {
        const std::string dataset =
            R"({"metadata":{"name":"digits"},"spec":{"sources":[{"storageUri":"s3://bucket/d"}]}})";
        cluster.api().create(kinds::kDatasets, ns, dataset);
        const auto made = cluster.api().create(
            kinds::kTrainingJobs,
            ns,
            fmt::format(
                R"({{"metadata":{{"name":"{}"}},"spec":{{"trainer":{{"image":"trainer:1"}},)"
                R"("datasets":[{{"name":"train","datasetRef":{{"name":"digits"}}}}]}}}})",
                name));
        ASSERT_EQ(made.status, 201) << made.body;
    }

    bool has_job(const std::string& ns, const std::string& name) {
        return cluster.api().with_model([&](ApiServerModel& model) {
            return model.find(kinds::kJobs, {ns, name + "-a1"}).has_value();
        });
    }

    std::size_t before_ = 0;
};

TEST_F(OperatorNamespaces, RunsOnlyJobsOfWatchedNamespaces) {
    add_job("unwatched", "a");
    add_job("vision", "b");
    add_job("ml", "c");
    EXPECT_TRUE(eventually([&] { return has_job("vision", "b") && has_job("ml", "c"); }));
    EXPECT_FALSE(has_job("unwatched", "a"));
}

TEST_F(OperatorNamespaces, RequestsOnlyWatchedNamespaces) {
    ASSERT_TRUE(operator_->wait_ready());
    const auto seen = cluster.api().seen();
    for (std::size_t i = before_; i < seen.size(); ++i) {
        const std::string path = seen[i].target.substr(0, seen[i].target.find('?'));
        for (const char* kind :
             {"/trainingjobs", "/datasets", "/cachequotas", "/jobs", "/services", "/pods"}) {
            if (path.ends_with(kind)) {
                EXPECT_NE(path.find("/namespaces/"), std::string::npos) << seen[i].target;
                EXPECT_EQ(path.find("unwatched"), std::string::npos) << seen[i].target;
            }
        }
    }
}

TEST_F(OperatorNamespaces, LostWatchOfOneNamespaceKeepsOthersObjects) {
    add_job("vision", "b");
    add_job("ml", "c");
    ASSERT_TRUE(eventually([&] { return has_job("vision", "b") && has_job("ml", "c"); }));
    const std::string both = "stoker_watch_objects{kind=\"trainingjobs\"} 2";
    ASSERT_TRUE(eventually(
        [&] { return operator_->http_body("/metrics").find(both) != std::string::npos; }));
    Fault gone;
    gone.target_contains = "/namespaces/ml/trainingjobs?watch";
    gone.status = 410;
    gone.body = R"({"kind":"Status","reason":"Expired","code":410,"message":"too old"})";
    cluster.api().add_fault(gone);
    const std::size_t lists = cluster.api().count("GET", "/namespaces/ml/trainingjobs?limit") +
                              cluster.api().count("GET", "/namespaces/ml/trainingjobs?resource");
    cluster.api().cut_watches();
    EXPECT_TRUE(eventually([&] {
        return cluster.api().count("GET", "/namespaces/ml/trainingjobs?limit") +
                   cluster.api().count("GET", "/namespaces/ml/trainingjobs?resource") >
               lists;
    }));
    EXPECT_NE(operator_->http_body("/metrics").find(both), std::string::npos);
}

}  // namespace
}  // namespace stoker::test
