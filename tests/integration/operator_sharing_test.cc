// A Dataset of one namespace and a job of another: the objects that a real operator creates at a
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
        return control::parse_document<control::Dataset>(found->text()).value();
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

    // Attaches the filler's sidecar on node-1.
    std::unique_ptr<testing::SidecarClient> attach_filler() {
        EXPECT_TRUE(eventually([&] { return cluster.find_filler("data", "node-1").has_value(); }));
        const std::string pod = cluster.run_filler("data", "node-1");
        auto sidecar = std::make_unique<testing::SidecarClient>(
            operator_->wait_control_address(), operator_->ca(), "token.of." + pod);
        control::v1::Hello hello = testing::make_hello("data", pod);
        hello.set_training_job("filler/imagenet/nvme");
        hello.set_training_job_uid(dataset_uid);
        hello.mutable_datasets(0)->set_name("imagenet");
        hello.mutable_datasets(0)->set_dataset_uid(dataset_uid);
        sidecar->hello(hello);
        return sidecar;
    }

    control::v1::Report filler_report(std::uint64_t sequence, std::uint64_t resident_bytes) const {
        control::v1::Report report = report_of(sequence, resident_bytes);
        report.mutable_datasets(0)->set_name("imagenet");
        return report;
    }

    std::string fillers() {
        const auto conditions = dataset().status.conditions;
        const control::Condition* found = control::find_condition(conditions, "FillersReady");
        return found == nullptr ? "" : found->reason + ": " + found->message;
    }

    std::string data_ready(const std::string& want, const std::string& job = "reader") {
        return wait_condition(kinds::kTrainingJobs, job, "DataReady", want);
    }
};

TEST_F(OperatorSharing, JobWaitsUntilItsNamespaceLabelsMatchTheSharing) {
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

TEST_F(OperatorSharing, JobStartsWhenTheSharingChanges) {
    add_reader("reader");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    const auto done = cluster.api().merge(
        kinds::kDatasets,
        kDataset,
        R"({"spec":{"sharing":{"namespaceSelector":{"matchLabels":null}}}})");
    ASSERT_EQ(done.status, 200) << done.body;
    EXPECT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
}

TEST_F(OperatorSharing, MissingAndUnsharedDatasetsHaveTheSameMessage) {
    add_reader("reader");
    add_reader("guess", "", "imagexxx");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    EXPECT_EQ(data_ready("False NotShared", "guess"), "False NotShared");
    std::string told = cluster.message(kinds::kTrainingJobs, "guess", "DataReady");
    ASSERT_THAT(told, HasSubstr("imagexxx"));
    told.replace(told.find("imagexxx"), 8, "imagenet");
    EXPECT_EQ(cluster.message(kinds::kTrainingJobs, "reader", "DataReady"), told);
}

TEST_F(OperatorSharing, WithdrawalKeepsTheAttemptAndRefusesTheNext) {
    label("vision");
    add_reader("reader", R"(,"runPolicy":{"backoffLimit":3})");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    cluster.run_pods("reader-a1", "node-1");
    ASSERT_EQ(wait_state("reader", "False Running"), "False Running");
    const auto sidecar = attach("reader");
    ASSERT_TRUE(sidecar->report(report_of(1, 90'000)));
    const auto filler = attach_filler();
    ASSERT_TRUE(filler->report(filler_report(1, 60'000)));
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 60'000; }));
    EXPECT_EQ(dataset().status.jobs, 1);

    label("nlp");
    const auto told = [&] {
        return cluster.message(kinds::kTrainingJobs, "reader", "DataReady")
                   .find("another would not start") != std::string::npos;
    };
    EXPECT_TRUE(eventually(told));
    EXPECT_EQ(data_ready("True Listed"), "True Listed");
    ASSERT_TRUE(filler->report(filler_report(2, 70'000)));
    EXPECT_TRUE(eventually([&] { return dataset().status.cached_bytes == 70'000; }))
        << "the filler still serves it";
    EXPECT_EQ(wait_state("reader", "False Running"), "False Running");

    cluster.finish("reader-a1", 1);
    EXPECT_EQ(wait_state("reader", "False Waiting"), "False Waiting");
    EXPECT_EQ(data_ready("False NotShared"), "False NotShared");
    EXPECT_FALSE(cluster.find(kinds::kJobs, "reader-a2").has_value());
    EXPECT_TRUE(eventually([&] { return dataset().status.jobs == 0; }));
}

TEST_F(OperatorSharing, FillerGetsTheGrant) {
    label("vision");
    add_reader("reader");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    cluster.run_pods("reader-a1", "node-1");
    ASSERT_EQ(wait_state("reader", "False Running"), "False Running");
    const auto guest = attach("reader");
    ASSERT_TRUE(guest->report(report_of(1, 90'000)));
    const auto filler = attach_filler();
    ASSERT_TRUE(filler->report(filler_report(1, 0)));
    std::uint64_t granted = 0;
    control::v1::OperatorMessage message;
    while (granted == 0 && filler->receive(message)) {
        for (const auto& grant : message.grants()) {
            granted = grant.dataset_uid() == dataset_uid ? grant.resident_bytes() : granted;
        }
    }
    EXPECT_GT(granted, 0U);
    EXPECT_TRUE(eventually([&] { return fillers().starts_with("Serving"); })) << fillers();
}

TEST_F(OperatorSharing, JobWaitingForFillerExplainsWhy) {
    label("vision");
    add_reader("reader");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    cluster.run_pods("reader-a1", "node-1");
    ASSERT_EQ(wait_state("reader", "False Running"), "False Running");
    const auto guest = attach("reader");
    control::v1::Report report = report_of(1, 0);
    report.mutable_datasets(0)->set_manifest_state(control::v1::MANIFEST_STATE_LISTING);
    report.mutable_datasets(0)->set_error("no sidecar of the dataset's owner serves this node yet");
    ASSERT_TRUE(guest->report(report));
    EXPECT_EQ(data_ready("False WaitingForOwner"), "False WaitingForOwner");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "reader", "DataReady"),
        HasSubstr("1 of 1 fillers are not ready: node node-1:"));
}

TEST_F(OperatorSharing, NewOperatorKeepsFillersGracePeriod) {
    label("vision");
    add_reader("reader");
    ASSERT_TRUE(wait_object(kinds::kJobs, "reader-a1"));
    cluster.run_pods("reader-a1", "node-1");
    ASSERT_TRUE(eventually([&] { return cluster.find_filler("data", "node-1").has_value(); }));
    const std::string uid =
        control::string_at(cluster.find_filler("data", "node-1")->value(), {"metadata", "uid"});
    operator_.reset();
    start("operator-1");
    cluster.finish("reader-a1", 0);
    const auto mark = [&] {
        const auto job = cluster.find_filler("data", "node-1");
        return job ? control::string_at(
                         job->value(), {"metadata", "annotations", "stoker.dev/idle-since"})
                   : "gone";
    };
    EXPECT_TRUE(eventually([&] { return !mark().empty(); }));
    ASSERT_TRUE(cluster.find_filler("data", "node-1").has_value()) << "the grace runs";
    EXPECT_EQ(
        control::string_at(cluster.find_filler("data", "node-1")->value(), {"metadata", "uid"}),
        uid);
}

}  // namespace
}  // namespace stoker::test
