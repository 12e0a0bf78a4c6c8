#include "operator/api/sidecar_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DatasetConfig make_dataset(Contract contract, ContractParameters parameters = {}) {
    DatasetConfig dataset;
    dataset.name = "train";
    dataset.contract = contract;
    dataset.parameters = std::move(parameters);
    return dataset;
}

std::string sidecar_text(DatasetConfig dataset) {
    SidecarConfig config;
    config.datasets = {std::move(dataset)};
    return to_json(config).text();
}

TEST(SidecarConfig, SendsContractAndParametersToSidecarAndTrainer) {
    const DatasetConfig dataset = make_dataset(
        Contract::kImportance, {{{"beta", 0.33}, {"warmupEpochs", 5}}, {{"family", "ICache"}}});
    for (const std::string& text :
         {sidecar_text(dataset), to_json(std::vector<DatasetConfig>{dataset}).text()}) {
        EXPECT_THAT(text, HasSubstr(R"("contract":"importance")"));
        EXPECT_THAT(text, HasSubstr(R"("beta":0.33)"));
        EXPECT_THAT(text, HasSubstr(R"("warmupEpochs":5)"));
        EXPECT_THAT(text, HasSubstr(R"("family":"icache")"));
    }
}

// Without this setting, the program could choose a contract that the job does not allow.
TEST(SidecarConfig, SendsExactContractToSidecarAndTrainer) {
    const DatasetConfig dataset = make_dataset(Contract::kExact);
    for (const std::string& text :
         {sidecar_text(dataset), to_json(std::vector<DatasetConfig>{dataset}).text()}) {
        EXPECT_THAT(text, HasSubstr(R"("contract":"exact")"));
        EXPECT_THAT(text, Not(HasSubstr("sampling")));
    }
}

// Auto is the sidecar's default: the contract chooses the policy.
TEST(SidecarConfig, NamesAnEvictionPolicyOnlyIfChosen) {
    DatasetConfig dataset = make_dataset(Contract::kExact);
    EXPECT_THAT(sidecar_text(dataset), Not(HasSubstr("eviction")));
    for (const EvictionPolicy policy : {EvictionPolicy::kUniform, EvictionPolicy::kNone}) {
        dataset.eviction = policy;
        EXPECT_THAT(sidecar_text(dataset), HasSubstr(R"("eviction":"never")"));
    }
    dataset.eviction = EvictionPolicy::kLru;
    EXPECT_THAT(sidecar_text(dataset), HasSubstr(R"("eviction":"lru")"));
    dataset.eviction = EvictionPolicy::kLfu;
    EXPECT_THAT(sidecar_text(dataset), HasSubstr(R"("eviction":"lfu")"));
}

}  // namespace
}  // namespace stoker::control
