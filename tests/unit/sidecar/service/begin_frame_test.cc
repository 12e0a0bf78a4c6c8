#include "sidecar/service/begin_frame.h"

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

TEST(BeginFrame, IsLimitedToTheContractAndParametersOfTheJob) {
    const ContractTerms job{"importance", {{"beta", 0.33}, {"lShare", 0.2}}};
    local::Begin begin;
    begin.contract = "importance";
    begin.parameters = {{"beta", 0.2}, {"accuracy", 0.9}};
    ASSERT_TRUE(limit_begin(begin, job).has_value());
    EXPECT_THAT(
        begin.parameters,
        testing::UnorderedElementsAre(
            local::Parameter{"accuracy", 0.9},
            local::Parameter{"beta", 0.2},
            local::Parameter{"lShare", 0.2}));
    begin.parameters = {{"beta", 0.5}};
    EXPECT_EQ(limit_begin(begin, job).error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(limit_begin(begin, std::nullopt).has_value());
}

TEST(BeginFrame, PrefixesTheJobNameWithTheJobUid) {
    local::Begin begin;
    begin.job = "another job";
    stamp_job(begin, "uid-1");
    EXPECT_EQ(begin.job, "uid-1/another job");
    stamp_job(begin, "");
    EXPECT_EQ(begin.job, "uid-1/another job");
}

}  // namespace
}  // namespace stoker::sidecar
