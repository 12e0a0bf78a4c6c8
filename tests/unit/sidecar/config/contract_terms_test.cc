#include "sidecar/config/contract_terms.h"

#include <gmock/gmock.h>

#include "common/domain/contract_table.h"
#include "sidecar/config/sidecar_config.h"

namespace stoker::sidecar {
namespace {

using testing::HasSubstr;

Result<SidecarConfig> parse(const std::string& keys) {
    return parse_sidecar_config(
        "datasets:\n- name: train\n  origin: {uri: 's3://mnist'}\n  directory: /nvme/mnist\n" +
            keys,
        [](const char*) { return std::nullopt; });
}

ContractTerms terms(std::string contract, std::map<std::string, double, std::less<>> parameters) {
    return {std::move(contract), std::move(parameters)};
}

TEST(ContractTerms, WithoutTermsTrainersMayRequestAnything) {
    EXPECT_EQ(parse("").value().datasets[0].contract, std::nullopt);
}

TEST(ContractTerms, ParametersHaveTheNamesThatTheTrainingJobUses) {
    const auto config = parse(
        "  contract: importance\n"
        "  sampling: {family: iowa, outRate: 0.25, recallAfter: 4, redundancy: repeat}\n");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(
        config->datasets[0].contract,
        terms(
            "importance",
            {{"family", 1}, {"outRate", 0.25}, {"recallAfter", 4}, {"redundancy", 2}}));
    EXPECT_EQ(parse("  contract: exact\n").value().datasets[0].contract, terms("exact", {}));
}

TEST(ContractTerms, ReportsEveryMistakeAtOnce) {
    const auto config = parse(
        "  contract: importance\n"
        "  sampling: {beta: 17, reuseFactor: 1.5, family: fast, chunkGroup: 4, hShare: lots,\n"
        "    bta: 1}\n");
    ASSERT_FALSE(config);
    const std::string& text = config.error().message;
    EXPECT_THAT(text, HasSubstr("datasets[0].sampling.beta: must be a number from 0 to 16\n"));
    EXPECT_THAT(text, HasSubstr("sampling.reuseFactor: must be a number from 1 to 10000 in steps"));
    EXPECT_THAT(text, HasSubstr("sampling.family: \"fast\" is none of icache, iowa\n"));
    EXPECT_THAT(text, HasSubstr("sampling.chunkGroup: belongs to contract windowed, not to impo"));
    EXPECT_THAT(text, HasSubstr("datasets[0].sampling.hShare: "));
    EXPECT_THAT(text, HasSubstr("datasets[0].sampling.bta: unknown key"));
}

TEST(ContractTerms, RefusesAnUnknownContractByItsPath) {
    const auto config = parse("  contract: fast\n  sampling: {beta: 1}\n");
    ASSERT_FALSE(config);
    EXPECT_EQ(
        config.error().message,
        "datasets[0].contract: \"fast\" is none of exact, windowed, importance, replicate");
}

TEST(ContractTerms, RejectsParametersWithoutAContract) {
    EXPECT_THAT(
        parse("  sampling: {beta: 1}\n").error().message, HasSubstr("belongs to contract importa"));
}

TEST(ContractTerms, ATrainerMayNarrowTheContractButNotWidenIt) {
    EXPECT_EQ(
        narrow(terms("importance", {{"beta", 1}}), terms("windowed", {{"drift", 0.5}})).value(),
        terms("windowed", {{"drift", 0.5}}));
    EXPECT_TRUE(narrow(terms("replicate", {}), terms("windowed", {})).has_value());
    const auto wider = narrow(terms("windowed", {}), terms("importance", {}));
    ASSERT_FALSE(wider);
    EXPECT_EQ(wider.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(
        wider.error().message,
        HasSubstr("allows contract 'windowed', so its trainers may ask for 'windowed' or 'exact', "
                  "not for 'importance'"));
    EXPECT_FALSE(narrow(terms("exact", {}), terms("windowed", {})).has_value());
    EXPECT_FALSE(narrow(terms("importance", {}), terms("replicate", {})).has_value());
}

TEST(ContractTerms, ATrainerMayOnlyMakeAParameterStricter) {
    const ContractTerms job = terms("importance", {{"beta", 0.33}, {"warmupEpochs", 5}});
    EXPECT_EQ(
        narrow(job, terms("importance", {{"beta", 0.2}, {"hShare", 0.9}})).value(),
        terms("importance", {{"beta", 0.2}, {"hShare", 0.9}, {"warmupEpochs", 5}}));
    EXPECT_THAT(
        narrow(job, terms("importance", {{"beta", 0.5}})).error().message,
        HasSubstr("the job sets beta=0.33; its trainers may ask for at most 0.33, not for 0.5"));
    EXPECT_THAT(
        narrow(job, terms("importance", {{"warmupEpochs", 4}})).error().message,
        HasSubstr("at least 5, not for 4"));
    EXPECT_THAT(
        narrow(terms("importance", {{"family", 1}}), terms("importance", {{"family", 0}}))
            .error()
            .message,
        HasSubstr("may ask for iowa"));
}

// The limit of each parameter is accepted, a step beyond it is refused.
TEST(ContractTerms, EnforcesTheLimitOfEveryParameter) {
    for (const domain::ContractParameter& row : domain::kContractParameters) {
        const std::string contract{row.contract};
        const std::string name{row.name};
        const ContractTerms job = terms(contract, {{name, row.least}});
        EXPECT_EQ(narrow(job, terms(contract, {})).value(), job) << name;
        EXPECT_EQ(narrow(job, job).value(), job) << name;
        const bool may_grow = narrow(job, terms(contract, {{name, row.least + 1}})).has_value();
        EXPECT_EQ(may_grow, row.narrower == domain::Narrower::kMore) << name;
        const bool may_shrink = narrow(job, terms(contract, {{name, row.least - 1}})).has_value();
        EXPECT_EQ(may_shrink, row.narrower == domain::Narrower::kLess) << name;
    }
}

}  // namespace
}  // namespace stoker::sidecar
