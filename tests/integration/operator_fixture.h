#pragma once

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/resource_kind.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/poll.h"
#include "tests/support/running_operator.h"
#include "tests/support/sidecar_client.h"

namespace stoker::test {

namespace kinds = control::kinds;

// A cluster with one node, a pool and a Dataset, and a real operator that leads.
class OperatorTest : public ::testing::Test {
protected:
    OperatorTest() {
        cluster.add_node("node-1");
        cluster.add_pool("nvme", "1Gi");
        dataset_uid = cluster.add_dataset("digits");
        start();
    }

    ~OperatorTest() override {
        if (HasFailure() && operator_) {
            std::fprintf(stderr, "--- log of the operator\n%s---\n", operator_->log().c_str());
        }
    }

    void start(const std::string& pod_name = "operator-0") {
        RunningOperator::Options options;
        options.api_server = cluster.api().url();
        options.pod_name = pod_name;
        operator_ = std::make_unique<RunningOperator>(options);
    }

    // Waits for a condition and returns it, such as "True Granted"; after half a minute returns the
    // condition's current value.
    std::string wait_condition(
        const control::ResourceKind& kind,
        const std::string& name,
        const std::string& type,
        const std::string& want) {
        eventually([&] { return cluster.condition(kind, name, type) == want; });
        return cluster.condition(kind, name, type);
    }

    std::string wait_state(const std::string& job, const std::string& want) {
        return wait_condition(kinds::kTrainingJobs, job, "Finished", want);
    }

    bool wait_object(const control::ResourceKind& kind, const std::string& name) {
        return eventually([&] { return cluster.find(kind, name).has_value(); });
    }

    bool wait_gone(const control::ResourceKind& kind, const std::string& name) {
        return eventually([&] { return !cluster.find(kind, name).has_value(); });
    }

    // Creates a job with that name and its running pods; the Job's name is "<name>-a1".
    void run_job(const std::string& name, int nodes = 1, const std::string& more = "") {
        cluster.add_training_job(name, nodes, more);
        ASSERT_TRUE(wait_object(kinds::kJobs, name + "-a1"));
        cluster.run_pods(name + "-a1", "node-1");
        ASSERT_EQ(wait_state(name, "False Running"), "False Running");
    }

    // Attaches a sidecar for the pod of that rank.
    std::unique_ptr<testing::SidecarClient> attach(const std::string& job, int rank = 0) {
        const std::string pod = FakeCluster::pod_name(job + "-a1", rank);
        cluster.add_token("token.of." + pod, pod, "node-1");
        auto sidecar = std::make_unique<testing::SidecarClient>(
            operator_->wait_control_address(), operator_->ca(), "token.of." + pod);
        control::v1::Hello hello = testing::make_hello("ml", pod);
        hello.set_training_job(job);
        hello.set_training_job_uid(cluster.uid_of(kinds::kTrainingJobs, job));
        hello.set_rank(rank);
        hello.mutable_datasets(0)->set_dataset_uid(dataset_uid);
        sidecar->hello(hello);
        return sidecar;
    }

    // Report `sequence`: the listing has 100 samples, `resident_bytes` are on the node.
    control::v1::Report report_of(std::uint64_t sequence, std::uint64_t resident_bytes) const {
        control::v1::Report report = testing::make_report(sequence, resident_bytes);
        report.mutable_datasets(0)->set_dataset_uid(dataset_uid);
        return report;
    }

    FakeCluster cluster;
    std::string dataset_uid;
    std::unique_ptr<RunningOperator> operator_;
};

}  // namespace stoker::test
