#include "cli/stoker/simulate_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::cli {
namespace {

using testing::HasSubstr;

SimulateOptions parsed(const std::vector<std::string_view>& arguments) {
    auto options = parse_simulate(arguments);
    EXPECT_TRUE(options.has_value()) << options.error().message;
    return *std::move(options);
}

std::string complaint(const std::vector<std::string_view>& arguments) {
    const auto options = parse_simulate(arguments);
    return options ? "" : options.error().message;
}

TEST(SimulateOptions, DefaultsToOneExactJobWithoutWindow) {
    const auto options = parsed({});
    ASSERT_EQ(options.scenario.jobs.size(), 1U);
    EXPECT_EQ(options.scenario.jobs[0].contract, "exact");
    EXPECT_EQ(options.scenario.cache.window_share, 0);
}

TEST(SimulateOptions, SeveralJobsShareAWindowByDefault) {
    EXPECT_EQ(parsed({"--jobs", "3"}).scenario.cache.window_share, 0.1);
    EXPECT_EQ(parsed({"--jobs", "3", "--window-share", "0"}).scenario.cache.window_share, 0);
    EXPECT_EQ(parsed({"--jobs", "3"}).scenario.jobs.size(), 3U);
}

TEST(SimulateOptions, ReadsJobsUnitsAndSeeds) {
    const auto options = parsed(
        {"--job=speed=0.5,start=30s",
         "--job=contract=exact",
         "--sample-bytes=64Ki",
         "--origin-latency=20ms",
         "--seeds=3,4"});
    EXPECT_EQ(options.scenario.jobs[0].speed, 0.5);
    EXPECT_EQ(options.scenario.jobs[0].start, std::chrono::seconds{30});
    EXPECT_EQ(options.scenario.dataset.mean_bytes, kib(64));
    EXPECT_EQ(options.scenario.origin.latency, std::chrono::milliseconds{20});
    EXPECT_EQ(options.seeds, (std::vector<std::uint64_t>{3, 4}));
}

TEST(SimulateOptions, ParameterIsPassedToThePolicyThatHasIt) {
    const auto options = parsed({"--probes=3", "--policy=ods"});
    EXPECT_EQ(options.scenario.cache.parameters.at("probes"), 3);
}

TEST(SimulateOptions, ParsesTheFlagsOfPolicyNopfs) {
    const auto options = parsed(
        {"--policy=nopfs",
         "--world=8",
         "--placement=pooled",
         "--tier=share=0.1,read=1:100Mi/2:150Mi,threads=2",
         "--tier=share=0.3",
         "--origin-curve=1:330Mi/8:2870Mi",
         "--peer-bandwidth=1Gi"});
    const auto& spec = options.clairvoyant;
    EXPECT_TRUE(is_clairvoyant(options));
    EXPECT_EQ(spec.world, 8U);
    EXPECT_EQ(spec.placement, simulate::Placement::kPooled);
    ASSERT_EQ(spec.tiers.size(), 2U);
    EXPECT_EQ(spec.tiers[0].share, 0.1);
    ASSERT_EQ(spec.tiers[0].read.size(), 2U);
    EXPECT_EQ(spec.tiers[0].read[1].users, 2);
    EXPECT_EQ(spec.tiers[0].read[1].bytes_per_second, static_cast<double>(mib(150).count()));
    EXPECT_EQ(spec.origin.size(), 2U);
    EXPECT_EQ(spec.peer, static_cast<double>(gib(1).count()));
}

TEST(SimulateOptions, RejectsInvalidFlagsOfPolicyNopfs) {
    EXPECT_THAT(complaint({"--world=8"}), HasSubstr("--world: only --policy nopfs has it"));
    EXPECT_THAT(complaint({"--policy=nopfs", "--world=0"}), HasSubstr("1 rank or more"));
    EXPECT_THAT(
        complaint({"--policy=nopfs", "--jobs=2"}), HasSubstr("one job with contract exact"));
    EXPECT_THAT(complaint({"--policy=nopfs", "--tier=size=1"}), HasSubstr("a tier has no 'size'"));
    EXPECT_THAT(complaint({"--policy=nopfs", "--placement=any"}), HasSubstr("own or pooled"));
}

TEST(SimulateOptions, ErrorsNameTheFlagAndValidValues) {
    EXPECT_THAT(complaint({"--probes=3"}), HasSubstr("--probes: no job's contract"));
    EXPECT_THAT(complaint({"--job=beta=1"}), HasSubstr("contract exact has no parameter 'beta'"));
    EXPECT_THAT(complaint({"--job=exact"}), HasSubstr("is not name=value"));
    EXPECT_THAT(complaint({"--polycy=lru"}), HasSubstr("did you mean --policy?"));
    EXPECT_THAT(complaint({"--policy=lur"}), HasSubstr("there are: never-evict"));
    EXPECT_THAT(complaint({"--batch=99999999999"}), HasSubstr("--batch: 99999999999 is too large"));
    EXPECT_THAT(complaint({"--json=yes"}), HasSubstr("--json: takes no value"));
    EXPECT_THAT(complaint({"--jobs=0"}), HasSubstr("--jobs"));
}

TEST(SimulateOptions, HelpNamesContractsPoliciesAndParameters) {
    for (const char* word : {"--cache-share", "exact", "belady", "--over-request", "--seeds"}) {
        EXPECT_THAT(simulate_help(), HasSubstr(word));
    }
}

}  // namespace
}  // namespace stoker::cli
