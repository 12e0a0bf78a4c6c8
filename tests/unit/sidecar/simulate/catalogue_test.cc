#include "sidecar/simulate/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

using testing::HasSubstr;

std::string complaint(const Scenario& scenario) {
    const Status status = check_scenario(scenario);
    return status ? "" : status.error().message;
}

TEST(Catalogue, StandardScenarioIsValid) {
    EXPECT_EQ(complaint({}), "");
}

TEST(Catalogue, ListsTheContracts) {
    Scenario scenario;
    scenario.jobs[0].contract = "exakt";
    EXPECT_THAT(complaint(scenario), HasSubstr("no contract 'exakt'; there are: exact"));
}

TEST(Catalogue, ListsThePolicies) {
    Scenario scenario;
    scenario.cache.policy = "arc";
    EXPECT_THAT(complaint(scenario), HasSubstr("no policy 'arc'; there are: never-evict, lru"));
}

TEST(Catalogue, RejectsUnknownParametersOfAContract) {
    Scenario scenario;
    scenario.jobs[0].parameters["beta"] = 1;
    EXPECT_THAT(complaint(scenario), HasSubstr("contract exact has no parameter 'beta'"));
}

TEST(Catalogue, RejectsParametersOutOfRange) {
    Scenario scenario;
    scenario.cache.policy = "ods";
    scenario.cache.parameters["probes"] = 1.5;
    EXPECT_THAT(complaint(scenario), HasSubstr("probes must be a whole number, 0 to 1000"));
}

TEST(Catalogue, RejectsScenariosThatCannotBeSimulated) {
    Scenario belady;
    belady.cache.policy = "belady";
    belady.jobs.resize(2);
    EXPECT_THAT(complaint(belady), HasSubstr("one job"));
    Scenario share;
    share.cache.share = 1.2;
    EXPECT_THAT(complaint(share), HasSubstr("0 to 1, not 1.2"));
    Scenario none;
    none.epochs = 1;
    EXPECT_THAT(complaint(none), HasSubstr("epochs > discard"));
    Scenario origin;
    origin.origin.bytes_per_second = Bytes{};
    EXPECT_THAT(complaint(origin), HasSubstr("bandwidth"));
}

TEST(Catalogue, ReturnsDefaultsOfUnsetParameters) {
    Scenario scenario;
    scenario.cache.policy = "ods";
    EXPECT_EQ(policy_value(scenario, "probes"), 12);
    scenario.cache.parameters["probes"] = 3;
    EXPECT_EQ(policy_value(scenario, "probes"), 3);
    JobSpec job;
    job.contract = "importance";
    EXPECT_EQ(value_of(job, "beta"), 0.33);
    job.parameters["beta"] = 1;
    EXPECT_EQ(value_of(job, "beta"), 1);
}

TEST(Catalogue, SendsParametersByTheSidecarsNames) {
    JobSpec job;
    job.contract = "importance";
    job.parameters = {{"warmup-epochs", 2}, {"beta", 1}, {"loss-decay", 0.1}, {"weight", 3}};
    EXPECT_THAT(
        parameters_of(job),
        testing::ElementsAre(local::Parameter{"beta", 1}, local::Parameter{"warmupEpochs", 2}));
}

}  // namespace
}  // namespace stoker::simulate
