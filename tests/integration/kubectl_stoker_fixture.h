#pragma once

#include <string>

#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/snapshot.h"
#include "operator/kube/request.h"
#include "tests/integration/kubectl_plugin.h"
#include "tests/integration/operator_fixture.h"

namespace stoker::test {

using control::AllocationSnapshot;
using control::Json;
using ::testing::HasSubstr;
using ::testing::Not;

inline constexpr const char* kStatusJson =
    R"({"status":{"cache":{"pool":"nvme","wantedBytes":3221225472,"allocatedBytes":1073741824},
        "conditions":[{"type":"CacheAllocated","status":"True","reason":"PoolFull",
        "message":"1Gi of 3Gi granted: the job's nodes have no more room in pool nvme."}]}})";

// A cluster without an operator: the tests script the operator's responses.
class KubectlStoker : public ::testing::Test {
protected:
    KubectlStoker() {
        cluster.add_pool("nvme", "4Gi");
        cluster.add_dataset("digits");
        cluster.add_training_job("mnist");
        cluster.add(
            kinds::kCacheQuotas, "quota", R"({"poolRef":{"name":"nvme"},"nominalQuota":"2Gi"})");
    }

    // Writes the job's status as an operator would.
    void set_status() {
        const auto request = control::patch_request(
            kinds::kTrainingJobs,
            {"ml", "mnist"},
            Json::parse(kStatusJson).value(),
            control::PatchType::kMerge,
            "status");
        const auto answer =
            cluster.api().request({"PATCH", request.target, request.content_type, request.body});
        STOKER_CHECK(answer.status == 200, answer.body.c_str());
    }

    void set_holder(const std::string& holder) {
        const std::string body = fmt::format(
            R"({{"metadata":{{"name":"stoker-operator"}},"spec":{{"holderIdentity":"{}"}}}})",
            holder);
        const auto answer = cluster.api().create(kinds::kLeases, "stoker-system", body);
        STOKER_CHECK(answer.status == 201, answer.body.c_str());
    }

    // Two jobs; the pool's single node has room for one.
    static AllocationSnapshot snapshot() {
        AllocationSnapshot result;
        result.version = STOKER_VERSION;
        result.decided_at = WallTime{std::chrono::seconds{1'790'000'000}};
        result.served_at = result.decided_at + std::chrono::seconds{3};
        result.view.nodes = {{"nvme", "node-1", gib(4)}};
        result.view.quotas = {{"ml", "nvme", gib(8)}};
        result.view.step = mib(64);
        for (const char* name : {"mnist", "other"}) {
            control::Demand demand;
            demand.job = {"ml", name};
            demand.pool = "nvme";
            demand.nodes = {"node-1"};
            demand.datasets = {{"train", name, gib(3)}};
            const double ingest = demand.job.name == "mnist" ? 1e9 : 2e9;
            demand.rates = control::JobRates{ingest, 1e8, 1, false};
            result.view.demands.push_back(demand);
        }
        result.plan = control::plan_allocation(result.view);
        return result;
    }

    void answer_with(int status, const std::string& body) {
        cluster.api().set_pod_proxy([status, body](const auto&, const auto&, const auto&) {
            return ModelAnswer{status, body, std::nullopt};
        });
    }

    void lead_with(const AllocationSnapshot& what) {
        set_holder("operator-0_00c0ffee");
        answer_with(200, control::print_snapshot(what));
    }

    FakeCluster cluster;
    Plugin plugin{cluster.api().url()};
};

}  // namespace stoker::test
