#include "sidecar/core/sampling/sampler_settings.h"

#include <cmath>

#include <gmock/gmock.h>

#include "common/domain/contract_table.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;
using Parameters = std::map<std::string, double, std::less<>>;

SamplerSettings settings(std::string contract, Parameters parameters = {}) {
    return {.contract = std::move(contract), .parameters = std::move(parameters)};
}

TEST(SamplerSettings, UnsetParametersHaveTheirDefaultValues) {
    for (const domain::ContractParameter& row : domain::kContractParameters) {
        const std::string contract{row.contract};
        const std::string name{row.name};
        EXPECT_EQ(settings(contract).number(name), row.standard) << name;
        EXPECT_EQ(settings(contract, {{name, row.most}}).number(name), row.most) << name;
    }
}

TEST(SamplerSettings, FamilyIowaWarmsUpForOneEpochByDefault) {
    EXPECT_EQ(settings("importance", {{"family", 1}}).count<int>("warmupEpochs"), 1);
    EXPECT_EQ(
        settings("importance", {{"family", 1}, {"warmupEpochs", 4}}).count<int>("warmupEpochs"), 4);
    EXPECT_TRUE(settings("importance", {{"family", 1}, {"warmupEpochs", 4}}).check(9).has_value());
}

TEST(SamplerSettings, RejectsParametersThatTheTableForbids) {
    const auto message = [](const Parameters& parameters) {
        const auto checked = settings("importance", parameters).check(9);
        return checked ? std::string{} : checked.error().message;
    };
    EXPECT_EQ(message({}), "");
    EXPECT_EQ(message({{"beta", 16}, {"warmupEpochs", 0}}), "");
    EXPECT_EQ(message({{"beta", 17}}), "beta is 17, outside 0..16");
    EXPECT_EQ(message({{"beta", std::nan("")}}), "beta is nan, outside 0..16");
    EXPECT_EQ(message({{"warmupEpochs", 0.5}}), "warmupEpochs is 0.5, not a multiple of 1");
    EXPECT_THAT(message({{"drift", 0.5}}), HasSubstr("has no parameter 'drift' here; it has: "));
}

TEST(SamplerSettings, EachFamilyAcceptsItsOwnParametersOnly) {
    const auto knows = [](double family, const std::string& name, double value) {
        return settings("importance", {{"family", family}, {name, value}}).check(9).has_value();
    };
    for (const char* name : {"beta", "hShare", "lShare", "substitute"}) {
        EXPECT_TRUE(knows(0, name, 1)) << name;
        EXPECT_FALSE(knows(1, name, 1)) << name;
    }
    for (const char* name : {"outRate", "minFraction", "recallAfter", "redundancy"}) {
        EXPECT_FALSE(knows(0, name, 1)) << name;
        EXPECT_TRUE(knows(1, name, 1)) << name;
    }
}

TEST(SamplerSettings, RequiresSamplesAndRanks) {
    EXPECT_FALSE(settings("replicate").check(0).has_value());
    EXPECT_FALSE((SamplerSettings{.contract = "replicate", .ranks = 0}).check(9).has_value());
}

}  // namespace
}  // namespace stoker::sidecar
