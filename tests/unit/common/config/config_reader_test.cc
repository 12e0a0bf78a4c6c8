#include "common/config/config_reader.h"

#include <map>

#include <gtest/gtest.h>

namespace stoker::config {
namespace {

using namespace std::chrono_literals;

struct Settings {
    std::string socket = "/default";
    bool verbose = false;
    std::uint32_t port = 80;
    double share = 0.5;
    Bytes window = mib(1);
    Duration patience = 1s;
    std::vector<std::string> tags;
    std::vector<std::string> names;
};

Status read(std::string_view text, Settings& out) {
    STOKER_TRY(auto in, ConfigReader::parse(text));
    in.read("socket", out.socket);
    in.read("tags", out.tags);
    in.section("server", [&](ConfigReader& server) {
        server.read("port", out.port);
        server.read("verbose", out.verbose);
        server.read("patience", out.patience);
    });
    in.each("datasets", [&](ConfigReader& dataset) {
        std::string name;
        dataset.require("name", name);
        dataset.read("window", out.window);
        dataset.read("share", out.share);
        if (name == "evil") {
            dataset.mistake("name", "must not be evil");
        }
        out.names.push_back(name);
    });
    return in.finish();
}

TEST(ConfigReader, KeepsDefaultsOfAbsentKeys) {
    Settings out;
    ASSERT_TRUE(read(
        "socket: /run/s\ntags: [a, b]\nserver: {verbose: true, patience: 250ms}\n"
        "datasets: [{name: train, window: 256Mi}, {name: val}]\n",
        out));
    EXPECT_EQ(out.socket, "/run/s");
    EXPECT_TRUE(out.verbose);
    EXPECT_EQ(out.port, 80U);
    EXPECT_EQ(out.patience, 250ms);
    EXPECT_EQ(out.window, mib(256));
    EXPECT_EQ(out.tags, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(out.names, (std::vector<std::string>{"train", "val"}));
}

TEST(ConfigReader, ReadsAMappingWithArbitraryKeys) {
    std::map<std::string, std::string> limits{{"old", "1"}};
    auto good = ConfigReader::parse("limits: {cpu: 100m, nvidia.com/gpu: 1}");
    good->read("limits", limits);
    EXPECT_TRUE(good->finish());
    EXPECT_EQ(
        limits, (std::map<std::string, std::string>{{"cpu", "100m"}, {"nvidia.com/gpu", "1"}}));

    auto bad = ConfigReader::parse("limits: {cpu: [1]}");
    bad->read("limits", limits);
    EXPECT_EQ(bad->finish().error().message, "limits: must be a mapping of texts");
}

TEST(ConfigReader, EmptyTextIsAnEmptyMapping) {
    Settings out;
    EXPECT_TRUE(read("", out));
    EXPECT_TRUE(read("# nothing\n", out));
}

TEST(ConfigReader, ReportsEveryMistakeWithItsPath) {
    Settings out;
    const auto status = read(
        "sockets: x\ntags: a\nserver: {port: many, verbose: yes, patience: -3s}\n"
        "datasets: [{window: lots}, {name: evil, share: half, color: red}, 7]\n",
        out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(
        status.error().message,
        "tags: must be a list of texts\n"
        "server.port: \"many\" is not a number from 0 to 4294967295\n"
        "server.verbose: \"yes\" is not true or false\n"
        "server.patience: \"-3s\" is not a time, such as 250ms, 30s or 5m\n"
        "datasets[0].name: is required\n"
        "datasets[0].window: \"lots\" is not a number of bytes, such as 256Mi\n"
        "datasets[1].share: \"half\" is not a number from -1.7976931348623157e+308 to "
        "1.7976931348623157e+308\n"
        "datasets[1].name: must not be evil\n"
        "datasets[1].color: unknown key; known here: name, share, window\n"
        "datasets[2]: must be a mapping of keys\n"
        "sockets: unknown key; known here: datasets, server, socket, tags");
}

TEST(ConfigReader, RejectsDuplicateKeys) {
    Settings out;
    const auto status = read("socket: a\nsocket: b\n", out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "socket: duplicate key");
}

TEST(ConfigReader, ReportsThePositionOfBrokenYaml) {
    Settings out;
    const auto status = read("socket: [unclosed\n", out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message.substr(0, 6), "line 2");
    EXPECT_FALSE(read("- a list\n", out));
}

TEST(ParseBytes, ParsesKubernetesUnits) {
    EXPECT_EQ(parse_bytes("17").value(), Bytes{17});
    EXPECT_EQ(parse_bytes("256Mi").value(), mib(256));
    EXPECT_EQ(parse_bytes("1.5Gi").value(), mib(1536));
    EXPECT_EQ(parse_bytes("500M").value(), Bytes{500'000'000});
    EXPECT_EQ(parse_bytes("9223372036854775807").value(), Bytes{INT64_MAX});
    EXPECT_EQ(parse_bytes("unlimited").value(), Bytes::unlimited());
}

TEST(ParseBytes, RejectsOtherTexts) {
    for (const auto* text :
         {"", "-1", "Mi", "1 Gi", "1gb", "99999Ei", "1e400", "0x10", "1..2", "256m"}) {
        EXPECT_FALSE(parse_bytes(text).has_value()) << text;
    }
}

TEST(ParseDuration, RequiresOneOfFourUnits) {
    EXPECT_EQ(parse_duration("250ms").value(), 250ms);
    EXPECT_EQ(parse_duration("1.5s").value(), 1500ms);
    EXPECT_EQ(parse_duration("5m").value(), 5min);
    EXPECT_EQ(parse_duration("2h").value(), 2h);
    for (const auto* text : {"", "5", "s", "-1s", "1d", "99999999999h"}) {
        EXPECT_FALSE(parse_duration(text).has_value()) << text;
    }
}

}  // namespace
}  // namespace stoker::config
