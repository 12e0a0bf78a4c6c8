// A real operator with the fake API server; the test acts as Kueue.

#include <cpprest/json.h>
#include <fmt/format.h>

#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OperatorKueue : public OperatorTest {
protected:
    // Kueue's kinds exist before the operator starts.
    void install_kueue() {
        operator_.reset();
        cluster.api().with_model([](ApiServerModel& model) {
            model.serve(kinds::kWorkloads, true);
            model.serve(kinds::kResourceFlavors, false);
            model.serve(kinds::kPriorityClasses, false);
        });
        cluster.add(kinds::kResourceFlavors, "any", R"({"nodeLabels":{"gpu":"a100"}})");
        start("operator-1");
    }

    void queue_job(const std::string& name) {
        cluster.add_training_job(name, 1, R"(,"suspend":true)");
        cluster.change(
            kinds::kTrainingJobs,
            name,
            R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},"spec":{"suspend":false}})");
    }

    static std::string condition_json(
        const std::string& type, bool holds, const std::string& reason) {
        return fmt::format(
            R"({{"type":"{}","status":"{}","reason":"{}","message":"words of Kueue",)"
            R"("lastTransitionTime":"2026-01-01T00:00:00Z"}})",
            type,
            holds ? "True" : "False",
            reason);
    }

    void admit(const std::string& workload) { apply_admission(workload, ""); }

    // A server-side apply gives up fields that it omits, so this apply includes the admission.
    void evict(const std::string& workload) {
        apply_admission(workload, "," + condition_json("Evicted", true, "Preempted"));
    }

    void apply_admission(const std::string& workload, const std::string& more_conditions) {
        cluster.apply_status(
            kinds::kWorkloads,
            workload,
            "kueue-admission",
            fmt::format(
                R"({{"admission":{{"clusterQueue":"c","podSetAssignments":[)"
                R"({{"name":"main","flavors":{{"cpu":"any"}}}}]}},"conditions":[{},{}{}]}})",
                condition_json("QuotaReserved", true, "QuotaReserved"),
                condition_json("Admitted", true, "Admitted"),
                more_conditions));
    }

    void run_attempt(const std::string& job) {
        ASSERT_TRUE(wait_object(kinds::kJobs, job));
        cluster.run_pods(job, "node-1");
    }
};

TEST_F(OperatorKueue, EvictedJobReturnsItsQuotaAndRestartsOnAdmission) {
    install_kueue();
    queue_job("mnist");
    const std::string workload = "trainingjob-mnist";
    ASSERT_TRUE(wait_object(kinds::kWorkloads, workload));
    EXPECT_EQ(wait_state("mnist", "False Queued"), "False Queued");
    EXPECT_THAT(cluster.names(kinds::kJobs), IsEmpty());

    admit(workload);
    run_attempt("mnist-a1");
    const auto job = cluster.find(kinds::kJobs, "mnist-a1");
    const auto& pods = job->value().at("spec").at("template").at("spec");
    EXPECT_EQ(pods.at("nodeSelector").at("gpu").as_string(), "a100");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    EXPECT_EQ(
        wait_condition(kinds::kWorkloads, workload, "PodsReady", "True PodsReady"),
        "True PodsReady");

    evict(workload);
    EXPECT_TRUE(wait_gone(kinds::kJobs, "mnist-a1"));
    EXPECT_EQ(
        wait_condition(kinds::kWorkloads, workload, "QuotaReserved", "False Pending"),
        "False Pending");
    EXPECT_EQ(cluster.condition(kinds::kWorkloads, workload, "Requeued"), "True Preempted");
    EXPECT_EQ(
        control::string_at(
            cluster.find(kinds::kWorkloads, workload)->value(),
            {"status", "admission", "clusterQueue"}),
        "");
    EXPECT_EQ(wait_state("mnist", "False Queued"), "False Queued");
    EXPECT_THAT(
        cluster.message(kinds::kTrainingJobs, "mnist", "Finished"), HasSubstr("words of Kueue"));

    admit(workload);
    run_attempt("mnist-a1");
    EXPECT_EQ(wait_state("mnist", "False Running"), "False Running");
    cluster.finish("mnist-a1", 0);
    EXPECT_EQ(wait_state("mnist", "True Complete"), "True Complete");
    EXPECT_EQ(
        wait_condition(kinds::kWorkloads, workload, "Finished", "True Succeeded"),
        "True Succeeded");
}

TEST_F(OperatorKueue, SuspendedJobLeavesTheQueue) {
    install_kueue();
    queue_job("mnist");
    ASSERT_TRUE(wait_object(kinds::kWorkloads, "trainingjob-mnist"));
    cluster.change(kinds::kTrainingJobs, "mnist", R"({"spec":{"suspend":true}})");
    EXPECT_TRUE(wait_gone(kinds::kWorkloads, "trainingjob-mnist"));
    EXPECT_EQ(wait_state("mnist", "False Suspended"), "False Suspended");
}

}  // namespace
}  // namespace stoker::test
