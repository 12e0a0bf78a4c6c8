// The operator's program with a fake API server: one test for each kind of program that it talks
// to. tests/world checks its behaviour.
#include <cpprest/json.h>
#include <fmt/format.h>

#include "tests/integration/operator_fixture.h"
#include "tests/support/node_client.h"

namespace stoker::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_node_report;
using testing::NodeAnswer;
using ::testing::Not;

using OperatorProgram = OperatorTest;

TEST_F(OperatorProgram, TrainingJobCreatesJobAndService) {
    cluster.add_training_job("mnist", 2);
    ASSERT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
    ASSERT_TRUE(wait_object(kinds::kServices, "mnist-ranks"));
    const std::string uid = cluster.uid_of(kinds::kTrainingJobs, "mnist");
    for (const auto& child :
         {*cluster.find(kinds::kJobs, "mnist-a1"),
          *cluster.find(kinds::kServices, "mnist-ranks")}) {
        const auto& owner = child.value().at("metadata").at("ownerReferences").at(0);
        EXPECT_EQ(control::string_at(owner, {"uid"}), uid);
        EXPECT_EQ(control::string_at(owner, {"kind"}), "TrainingJob");
        EXPECT_TRUE(owner.at("controller").as_bool());
    }
    EXPECT_EQ(wait_state("mnist", "False Starting"), "False Starting");
    EXPECT_EQ(cluster.training_job("mnist").status.attempt, 1);

    cluster.run_pods("mnist-a1", "node-1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    cluster.finish("mnist-a1", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    EXPECT_TRUE(eventually([&] { return cluster.operator_events("mnist").contains("Complete"); }));
}

TEST_F(OperatorProgram, PoolIsReadyAfterNodeProgramReportsIt) {
    const auto wait_ready = [this](const std::string& want) {
        return wait_condition(kinds::kCachePools, "nvme", "Ready", want);
    };
    const auto call = [this, token = cluster.add_node_program("node-1")](const auto& report) {
        return testing::call_report(
            operator_->wait_control_address(), operator_->ca(), token, report);
    };
    EXPECT_EQ(wait_ready("Unknown NodesNotHeard"), "Unknown NodesNotHeard");
    node::v1::NodeReport report;
    report.set_node("node-1");
    const NodeAnswer answer = call(report);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.orders.pools_size(), 1);
    EXPECT_EQ(answer.orders.pools(0).pool(), "nvme");
    EXPECT_EQ(answer.orders.pools(0).path(), "/var/lib/stoker");
    EXPECT_GE(answer.orders.next_call_seconds(), 5U);

    report = make_node_report("node-1");
    report.mutable_pools(0)->set_verdict(node::v1::POOL_VERDICT_NOT_EMPTY);
    report.mutable_pools(0)->set_message("/var/lib/stoker on node-1 is not empty: photos");
    ASSERT_TRUE(call(report).status.ok());
    EXPECT_EQ(wait_ready("False NotEmpty"), "False NotEmpty");
    EXPECT_THAT(cluster.message(kinds::kCachePools, "nvme", "Ready"), HasSubstr("photos"));

    ASSERT_TRUE(call(make_node_report("node-1")).status.ok());
    EXPECT_EQ(wait_ready("True Ready"), "True Ready");
    EXPECT_THAT(
        operator_->http_body("/metrics"),
        HasSubstr("stoker_pool_node_verdict{pool=\"nvme\",verdict=\"Ready\"} 1"));
}

// The operator notices a changed label of the job's namespace; the Dataset is in another namespace.
TEST_F(OperatorProgram, JobWaitsUntilItsNamespaceLabelsMatchTheSharing) {
    const auto create =
        [this](const control::ResourceKind& kind, const std::string& ns, const std::string& body) {
            const auto made = cluster.api().create(kind, ns, body);
            ASSERT_EQ(made.status, 201) << made.body;
        };
    create(kinds::kNamespaces, "", R"({"metadata":{"name":"data"}})");
    create(kinds::kNamespaces, "", R"({"metadata":{"name":"ml","labels":{"team":"nlp"}}})");
    create(
        kinds::kDatasets,
        "data",
        R"({"metadata":{"name":"imagenet"},"spec":{"sources":[{"storageUri":"s3://secret-bucket/a",)"
        R"("secretRef":{"name":"keys"}}],)"
        R"("sharing":{"namespaceSelector":{"matchLabels":{"team":"vision"}}}}})");
    cluster.add(
        kinds::kTrainingJobs,
        "reader",
        R"({"trainer":{"image":"trainer:1","numNodes":1},"datasets":[{"name":"train",)"
        R"("datasetRef":{"namespace":"data","name":"imagenet"}}]})");
    const std::string type = "DataReady";
    EXPECT_EQ(
        wait_condition(kinds::kTrainingJobs, "reader", type, "False NotShared"), "False NotShared");
    const std::string told = cluster.message(kinds::kTrainingJobs, "reader", type);
    EXPECT_THAT(told, HasSubstr("data/imagenet is not shared with namespace ml"));
    EXPECT_THAT(told, Not(HasSubstr("secret-bucket")));
    EXPECT_THAT(cluster.names(kinds::kJobs), IsEmpty());
    cluster.change(kinds::kNamespaces, "ml", R"({"metadata":{"labels":{"team":"vision"}}})");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    const std::string job = cluster.find(kinds::kJobs, "reader-a1")->text();
    EXPECT_THAT(job, HasSubstr(R"("dataset":"imagenet","namespace":"data")"));
    EXPECT_THAT(job, HasSubstr(R"("optional":true,"secretName":"keys")"));
}

class OperatorNamespaces : public OperatorTest {
protected:
    void add_job(const std::string& ns) {
        const std::string dataset =
            R"({"metadata":{"name":"digits"},"spec":{"sources":[{"storageUri":"s3://bucket/d"}]}})";
        cluster.api().create(kinds::kDatasets, ns, dataset);
        const auto made = cluster.api().create(
            kinds::kTrainingJobs,
            ns,
            R"({"metadata":{"name":"mnist"},"spec":{"trainer":{"image":"trainer:1"},)"
            R"("datasets":[{"name":"train","datasetRef":{"name":"digits"}}]}})");
        ASSERT_EQ(made.status, 201) << made.body;
    }

    bool has_job(const std::string& ns) {
        return cluster.api().with_model([&](ApiServerModel& model) {
            return model.find(kinds::kJobs, {ns, "mnist-a1"}).has_value();
        });
    }
};

TEST_F(OperatorNamespaces, WatchesAndRunsOnlyTheGivenOnes) {
    RunningOperator::Options options;
    options.api_server = cluster.api().url();
    options.watch_namespaces = "ml, vision";
    operator_.reset();
    const std::size_t before = cluster.api().seen().size();
    operator_ = std::make_unique<RunningOperator>(options);
    for (const char* ns : {"unwatched", "vision", "ml"}) {
        add_job(ns);
    }
    EXPECT_TRUE(eventually([&] { return has_job("vision") && has_job("ml"); }));
    EXPECT_FALSE(has_job("unwatched"));
    const auto seen = cluster.api().seen();
    for (std::size_t i = before; i < seen.size(); ++i) {
        const std::string path = seen[i].target.substr(0, seen[i].target.find('?'));
        for (const char* kind :
             {"/trainingjobs", "/datasets", "/cachequotas", "/jobs", "/services", "/pods"}) {
            if (path.ends_with(kind)) {
                EXPECT_THAT(path, HasSubstr("/namespaces/"));
                EXPECT_THAT(path, Not(HasSubstr("unwatched")));
            }
        }
    }
}

}  // namespace
}  // namespace stoker::test
