#include "operator/kube/access.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace stoker::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Files in memory.
class AccessTest : public ::testing::Test {
protected:
    AccessSource source(AccessConfig config) {
        return AccessSource(
            std::move(config),
            [this](const std::string& path) -> Result<std::string> {
                ++reads[path];
                const auto found = files.find(path);
                if (found == files.end()) {
                    return fail(ErrorCode::kNotFound, "cannot read " + path);
                }
                return found->second;
            },
            clock);
    }

    static AccessConfig with_token_file() {
        AccessConfig config;
        config.server = "https://10.0.0.1:443";
        config.token_file = "/sa/token";
        return config;
    }

    testing::ManualClock clock;
    std::map<std::string, std::string> files;
    std::map<std::string, int> reads;
};

TEST_F(AccessTest, ReloadsTheTokenEveryMinute) {
    files["/sa/token"] = "one\n";
    auto access = source(with_token_file());
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    files["/sa/token"] = "two\n";
    clock.advance(seconds{59});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    EXPECT_EQ(reads["/sa/token"], 1);
    clock.advance(seconds{1});
    EXPECT_EQ(access.get()->authorization, "Bearer two");
}

TEST_F(AccessTest, KeepsTheOldTokenWhileTheFileIsGoneOrEmpty) {
    files["/sa/token"] = "one";
    auto access = source(with_token_file());
    EXPECT_TRUE(access.get());
    files["/sa/token"] = "\n";
    clock.advance(minutes{1});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
    files.clear();
    clock.advance(minutes{1});
    EXPECT_EQ(access.get()->authorization, "Bearer one");
}

TEST_F(AccessTest, ReportsAMissingFirstToken) {
    auto access = source(with_token_file());
    EXPECT_EQ(access.get().error().message, "cannot read /sa/token");
    files["/sa/token"] = "";
    EXPECT_EQ(access.get().error().message, "/sa/token is empty");
}

TEST_F(AccessTest, ReloadsAtOnceAfterARefusalAndReportsAChange) {
    files["/sa/token"] = "one";
    auto access = source(with_token_file());
    ASSERT_TRUE(access.get());
    EXPECT_FALSE(access.reject("Bearer one"));
    files["/sa/token"] = "two";
    EXPECT_TRUE(access.reject("Bearer one"));
    EXPECT_EQ(access.get()->authorization, "Bearer two");
}

TEST_F(AccessTest, ReloadsTheCaEveryFiveMinutesAndKeepsAValidOne) {
    AccessConfig config;
    config.ca_file = "/ca";
    files["/ca"] = "one";
    auto access = source(config);
    EXPECT_EQ(access.get()->ca_pem, "one");
    files["/ca"] = "two";
    clock.advance(minutes{5} - seconds{1});
    EXPECT_EQ(access.get()->ca_pem, "one");
    clock.advance(seconds{1});
    EXPECT_EQ(access.get()->ca_pem, "two");
    files["/ca"] = "";
    clock.advance(minutes{5});
    EXPECT_EQ(access.get()->ca_pem, "two") << "an empty bundle is no bundle";
    EXPECT_EQ(access.get()->authorization, "");
}

TEST(InClusterAccess, BracketsIpv6AndFailsOutsideAPod) {
    std::map<std::string, std::string> env = {
        {"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
    const auto get = [&](const char* name) { return env[name]; };
    const auto config = in_cluster_access(get, "/nowhere");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->server, "https://[fd00::1]:443");
    EXPECT_EQ(config->token_file, "/nowhere/token");
    env.clear();
    EXPECT_EQ(in_cluster_access(get).error().code, ErrorCode::kNotFound);
}

TEST(Base64, RoundTrips) {
    EXPECT_EQ(base64_encode("Man"), "TWFu");
    EXPECT_EQ(base64_encode("Ma"), "TWE=");
    EXPECT_EQ(base64_encode("M"), "TQ==");
    std::string all;
    for (int length = 0; length < 300; ++length) {
        EXPECT_EQ(base64_decode(base64_encode(all)).value(), all);
        all += static_cast<char>(length * 7);
    }
    EXPECT_FALSE(base64_decode("not*base64"));
}

}  // namespace
}  // namespace stoker::control
