// A Dataset of one namespace and a job of another, told by what a real operator makes of them at a
// fake API server.
#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/dataset.h"
#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const control::ObjectKey kDataset{"data", "imagenet"};

// Dataset data/imagenet is shared with team vision; the jobs are in namespace "ml".
class OperatorSharing : public OperatorTest {
protected:
    OperatorSharing() {
        create(kinds::kNamespaces, "", R"({"metadata":{"name":"data"}})");
        create(kinds::kNamespaces, "", R"({"metadata":{"name":"ml","labels":{"team":"nlp"}}})");
        create(
            kinds::kDatasets,
            kDataset.ns,
            R"({"metadata":{"name":"imagenet"},"spec":{"sources":[{"storageUri":"s3://secret-bucket/a",)"
            R"("secretRef":{"name":"keys"}}],)"
            R"("sharing":{"namespaceSelector":{"matchLabels":{"team":"vision"}}}}})");
        dataset_uid = dataset().meta.uid;
    }

    void create(const control::ResourceKind& kind, const std::string& ns, const std::string& body) {
        const auto made = cluster.api().create(kind, ns, body);
        ASSERT_EQ(made.status, 201) << made.body;
    }

    void label(const std::string& team) {
        cluster.change(
            kinds::kNamespaces,
            "ml",
            fmt::format(R"({{"metadata":{{"labels":{{"team":"{}"}}}}}})", team));
    }

    control::Dataset dataset() {
        const auto found = cluster.api().with_model(
            [](ApiServerModel& model) { return model.find(kinds::kDatasets, kDataset); });
        return control::parse_dataset(found->text()).value();
    }

    void add_reader(
        const std::string& name, const std::string& more = "", const std::string& of = "imagenet") {
        cluster.add(
            kinds::kTrainingJobs,
            name,
            R"({"trainer":{"image":"trainer:1","numNodes":1},"datasets":[{"name":"train",)"
            R"("datasetRef":{"namespace":"data","name":")" +
                of + R"("}}])" + more + "}");
    }

    std::string data_ready(const std::string& want, const std::string& job = "reader") {
        return wait_condition(kinds::kTrainingJobs, job, "DataReady", want);
    }
};

TEST_F(OperatorSharing, AJobWaitsUntilTheDatasetIsSharedWithTheLabelsOfItsNamespace) {
    add_reader("reader");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    EXPECT_EQ(wait_state("reader", "False Waiting"), "False Waiting");
    const std::string told = cluster.message(kinds::kTrainingJobs, "reader", "DataReady");
    EXPECT_THAT(told, HasSubstr("data/imagenet is not shared with namespace ml"));
    EXPECT_THAT(told, Not(HasSubstr("secret-bucket")));
    EXPECT_THAT(cluster.names(kinds::kJobs), IsEmpty());
    EXPECT_EQ(dataset().status.jobs, 0);
    label("vision");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    const std::string job = cluster.find(kinds::kJobs, "reader-a1")->text();
    EXPECT_THAT(job, HasSubstr(fmt::format(R"("uid":"{}","view":"shared")", dataset_uid)));
    EXPECT_THAT(job, HasSubstr(R"("dataset":"imagenet","namespace":"data")"));
    EXPECT_THAT(job, HasSubstr(R"("optional":true,"secretName":"keys")"));
}

TEST_F(OperatorSharing, AJobStartsWhenTheSharingChanges) {
    add_reader("reader");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    const auto done = cluster.api().merge(
        kinds::kDatasets,
        kDataset,
        R"({"spec":{"sharing":{"namespaceSelector":{"matchLabels":null}}}})");
    ASSERT_EQ(done.status, 200) << done.body;
    EXPECT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
}

TEST_F(OperatorSharing, AMissingDatasetIsToldInTheSameWords) {
    add_reader("reader");
    add_reader("guess", "", "imagexxx");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    EXPECT_EQ(data_ready("False NotShared", "guess"), "False NotShared");
    std::string told = cluster.message(kinds::kTrainingJobs, "guess", "DataReady");
    ASSERT_THAT(told, HasSubstr("imagexxx"));
    told.replace(told.find("imagexxx"), 8, "imagenet");
    EXPECT_EQ(cluster.message(kinds::kTrainingJobs, "reader", "DataReady"), told);
}

TEST_F(OperatorSharing, AWithdrawalLetsTheAttemptGoOnAndRefusesTheNext) {
    label("vision");
    add_reader("reader", R"(,"runPolicy":{"backoffLimit":3})");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    cluster.run_pods("reader-a1", "node-1");
    ASSERT_EQ(wait_state("reader", "False Running"), "False Running");
    const auto sidecar = attach("reader");
    ASSERT_TRUE(sidecar->report(report_of(1, 60'000)));
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 60'000; }));
    EXPECT_EQ(dataset().status.jobs, 1);

    label("nlp");
    const auto told = [&] {
        return cluster.message(kinds::kTrainingJobs, "reader", "DataReady")
                   .find("another would not start") != std::string::npos;
    };
    EXPECT_TRUE(eventually(told));
    EXPECT_EQ(data_ready("True Listed"), "True Listed");
    ASSERT_TRUE(sidecar->report(report_of(2, 70'000)));
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 70'000; }))
        << "what it reports still counts";
    EXPECT_EQ(wait_state("reader", "False Running"), "False Running");

    cluster.finish("reader-a1", 1);
    EXPECT_EQ(wait_state("reader", "False Waiting"), "False Waiting");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    EXPECT_FALSE(cluster.find(kinds::kJobs, "reader-a2").has_value());
    EXPECT_TRUE(eventually([&] { return dataset().status.jobs == 0; }));
}

}  // namespace
}  // namespace stoker::test
