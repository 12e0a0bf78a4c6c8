#include "operator/config/flags.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

Result<Flags> parse(const std::vector<const char*>& arguments) {
    return parse_flags(arguments);
}

TEST(Flags, TakesAValueBehindAnEqualsSignOrAsTheNextWord) {
    Flags want;
    want.config_file = "/etc/stoker/operator.yaml";
    want.log_level = "debug";
    want.kubeconfig = "a=b";
    want.check_config = true;
    EXPECT_EQ(
        *parse(
            {"--config=/etc/stoker/operator.yaml",
             "--log-level",
             "debug",
             "--kubeconfig=a=b",
             "--check-config"}),
        want);
}

TEST(Flags, NamesEveryMistakeAtOnce) {
    const auto refused = parse({"--cofnig=x", "--log-level=loud", "--version=2", "--probe"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(
        refused.error().message,
        "--cofnig=x: unknown; --help lists what there is\n"
        "--version: takes no value\n"
        "--probe: needs a value\n"
        "--log-level: must be debug, info, warning, error");
}

TEST(Flags, NeedsSettingsOnlyToRun) {
    EXPECT_EQ(parse({}).error().message, "--config: is required");
    EXPECT_EQ(parse({"--check-config"}).error().message, "--config: is required");
    EXPECT_TRUE(parse({"--version"})->version);
    EXPECT_TRUE(parse({"--help"})->help);
    EXPECT_EQ(
        parse({"--probe=http://localhost:8080/readyz"})->probe_url, "http://localhost:8080/readyz");
}

TEST(Flags, HelpNamesThemAll) {
    for (const char* name :
         {"--config", "--log-level", "--kubeconfig", "--probe", "--check-config", "--version"}) {
        EXPECT_NE(flags_help().find(name), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace stoker::control
