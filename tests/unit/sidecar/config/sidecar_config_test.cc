#include "sidecar/config/sidecar_config.h"

#include <map>

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

EnvLookup no_env() {
    return [](const char*) { return std::nullopt; };
}

constexpr const char* kLaptop =
    "socket: /tmp/stoker.sock\n"
    "datasets:\n"
    "- name: train\n"
    "  origin: {uri: 's3://mnist', endpoint: 'http://127.0.0.1:9000'}\n"
    "  directory: /nvme/mnist\n";

TEST(SidecarConfig, ALaptopNeedsFiveLines) {
    const auto config = parse_sidecar_config(kLaptop, no_env()).value();
    ASSERT_EQ(config.datasets.size(), 1U);
    const DatasetConfig& dataset = config.datasets[0];
    EXPECT_EQ(dataset.uid, "train");
    EXPECT_EQ(dataset.client_directory, "/nvme/mnist/data");
    EXPECT_TRUE(dataset.grant_bytes.is_unlimited());
    EXPECT_EQ(dataset.source.region, "us-east-1");
    EXPECT_EQ(config.control.endpoint, "");
}

TEST(SidecarConfig, SamplesAreObjectsOrInChunks) {
    const auto format_of = [](const std::string& format) {
        const std::string text =
            "datasets:\n- {name: a, origin: {uri: 's3://b'" + format + "}, directory: /d}\n";
        return parse_sidecar_config(text, no_env());
    };
    EXPECT_EQ(format_of("")->datasets[0].source.format, domain::SampleFormat::kObjects);
    EXPECT_EQ(
        format_of(", format: chunks")->datasets[0].source.format, domain::SampleFormat::kChunks);
    EXPECT_EQ(format_of(", format: tar")->datasets[0].source.format, domain::SampleFormat::kTar);
    EXPECT_FALSE(format_of(", format: parquet").has_value());
}

TEST(SidecarConfig, RowsHaveASize) {
    const auto source_of = [](const std::string& more) {
        const std::string text =
            "datasets:\n- {name: a, origin: {uri: 's3://b'" + more + "}, directory: /d}\n";
        return parse_sidecar_config(text, no_env());
    };
    const auto rows = source_of(", format: records, records: {bytes: 3073, suffix: .bin}");
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    EXPECT_EQ(rows->datasets[0].source.records, (domain::RecordRows{3073, ".bin"}));
    EXPECT_FALSE(source_of(", format: records").has_value());
    EXPECT_FALSE(source_of(", format: tfrecord, records: {bytes: 3}").has_value());
    for (const char* bytes : {"0", "1073741825", "-1", "3Ki"}) {
        EXPECT_FALSE(source_of(std::string{", format: records, records: {bytes: "} + bytes + "}}"))
            << bytes;
    }
}

TEST(SidecarConfig, BlockSizeHasADefaultAndLimits) {
    const auto source_of = [](const std::string& more) {
        const std::string text =
            "datasets:\n- {name: a, origin: {uri: 's3://b'" + more + "}, directory: /d}\n";
        return parse_sidecar_config(text, no_env());
    };
    const auto by_default = source_of(", format: blocks");
    ASSERT_TRUE(by_default.has_value()) << by_default.error().message;
    EXPECT_EQ(by_default->datasets[0].source.format, domain::SampleFormat::kBlocks);
    EXPECT_EQ(by_default->datasets[0].source.block_bytes, mib(8));
    EXPECT_EQ(
        source_of(", format: blocks, blockSize: 4Mi")->datasets[0].source.block_bytes, mib(4));
    EXPECT_FALSE(source_of(", format: blocks, blockSize: 1Ki").has_value());
    EXPECT_FALSE(source_of(", format: blocks, blockSize: 1Gi").has_value());
    EXPECT_FALSE(source_of(", blockSize: 4Mi").has_value());
    EXPECT_FALSE(source_of(", index: a.txt").has_value()) << "of web servers only";
}

TEST(SidecarConfig, ListingsHaveNoLimitOfAgeByDefault) {
    const auto age_of = [](const std::string& more) {
        const auto config = parse_sidecar_config(std::string{kLaptop} + more, no_env());
        EXPECT_TRUE(config.has_value()) << config.error().message;
        return config->datasets[0].listing_age_max;
    };
    EXPECT_EQ(age_of(""), std::nullopt);
    EXPECT_EQ(age_of("  listingAgeMax: 0s\n"), Duration{});
    EXPECT_EQ(age_of("  listingAgeMax: 3600s\n"), std::chrono::hours{1});
}

TEST(SidecarConfig, InAPodIdentityComesFromTheEnvironment) {
    const std::map<std::string, std::string> pod = {
        {"POD_NAMESPACE", "team-a"},
        {"POD_NAME", "resnet-a1-3-x"},
        {"NODE_NAME", "node-7"},
        {"ATTEMPT_UID", "uid-a1"},
        {"JOB_COMPLETION_INDEX", "3"},
        {"STOKER_CONTROL_CA", "PEM"},
    };
    const auto config =
        parse_sidecar_config(kLaptop, [&pod](const char* name) {
            const auto found = pod.find(name);
            return found == pod.end() ? std::nullopt : std::optional<std::string>{found->second};
        }).value();
    EXPECT_EQ(config.job.pod_namespace, "team-a");
    EXPECT_EQ(config.job.pod, "resnet-a1-3-x");
    EXPECT_EQ(config.job.node, "node-7");
    EXPECT_EQ(config.job.attempt_uid, "uid-a1");
    EXPECT_EQ(config.job.rank, 3U);
    EXPECT_EQ(config.control.ca_pem, "PEM");
}

TEST(SidecarConfig, ReportsEveryMistakeAtOnce) {
    const auto config = parse_sidecar_config(
        "sokcet: x\n"
        "datasets:\n"
        "- {name: a, origin: {uri: 'ftp://x'}, directory: rel, reservedFree: 1.5, grant: -1,\n"
        "   eviction: mru}\n"
        "- {name: a, directory: /d, window: 5}\n",
        no_env());
    ASSERT_FALSE(config);
    EXPECT_EQ(
        config.error().message,
        "datasets[0].origin.uri: \"ftp://x\" must begin with s3://, https://, http:// or file:/// "
        "(an "
        "absolute path)\n"
        "datasets[0].grant: \"-1\" is not a number of bytes, such as 256Mi\n"
        "datasets[0].eviction: \"mru\" is none of auto, never, lru, lfu\n"
        "datasets[0].directory: must be an absolute path\n"
        "datasets[0].reservedFree: must be at least 0 and less than 1\n"
        "datasets[1].origin: is required\n"
        "datasets[1].name: \"a\" is a duplicate name\n"
        "datasets[1].window: must be at least 1Mi\n"
        "sokcet: unknown key; known here: control, datasets, endWhenIdle, http, ioThreads, job, "
        "maxConnections, peers, s3Listen, socket, socketMode");
}

TEST(SidecarConfig, EndsWhenIdleOnlyIfConfigured) {
    EXPECT_EQ(parse_sidecar_config(kLaptop, no_env()).value().end_when_idle, Duration{});
    const auto config = parse_sidecar_config("endWhenIdle: 10m\n" + std::string{kLaptop}, no_env());
    EXPECT_EQ(config.value().end_when_idle, std::chrono::minutes{10});
}

TEST(SidecarConfig, S3ListensOnLoopbackOnly) {
    const auto config_with = [](const std::string& address) {
        return parse_sidecar_config(
            "s3Listen: '" + address + "'\n" + std::string{kLaptop}, no_env());
    };
    EXPECT_EQ(parse_sidecar_config(kLaptop, no_env()).value().s3_listen, "");
    EXPECT_EQ(config_with("127.0.0.1:9711").value().s3_listen, "127.0.0.1:9711");
    EXPECT_EQ(config_with("[::1]:9711").value().s3_listen, "[::1]:9711");
    for (const char* wrong :
         {"0.0.0.0:9711", "[::]:9711", "10.0.0.1:9711", "127.0.0.1", "localhost:1"}) {
        EXPECT_FALSE(config_with(wrong)) << wrong;
    }
}

TEST(SidecarConfig, EvictsNothingUnlessConfigured) {
    EXPECT_EQ(
        parse_sidecar_config(kLaptop, no_env()).value().datasets[0].eviction, EvictionKind::kAuto);
    const auto config = parse_sidecar_config(std::string{kLaptop} + "  eviction: lru\n", no_env());
    EXPECT_EQ(config.value().datasets[0].eviction, EvictionKind::kLru);
}

TEST(SidecarConfig, WeightsAreNumbersOfZeroOrMore) {
    const auto config =
        parse_sidecar_config(std::string{kLaptop} + "  weights: {a: 0.5, b: 0}\n", no_env());
    EXPECT_EQ(
        config.value().datasets[0].weights, (std::map<std::string, double>{{"a", 0.5}, {"b", 0}}));
    for (const char* wrong : {"-1", ".nan", "1e999", "much", "1x"}) {
        const auto refused = parse_sidecar_config(
            std::string{kLaptop} + "  weights: {a: " + wrong + "}\n", no_env());
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(
            refused.error().message,
            "datasets[0].weights: \"" + std::string{wrong} + "\" of a is no number of 0 or more");
    }
}

TEST(SidecarConfig, RequiresADataset) {
    EXPECT_EQ(parse_sidecar_config("", no_env()).error().message, "datasets: is required");
}

TEST(SidecarConfig, RefusesASocketPathThatIsTooLong) {
    const std::string text = "socket: /" + std::string(120, 'x') + "\n" + (kLaptop + 25);
    const auto config = parse_sidecar_config(text, no_env());
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().message, "socket: is longer than 107 bytes");
}

TEST(SidecarConfig, ReadsOptionalOriginSettings) {
    const auto parsed = [](const std::string& more) {
        const std::string origin = "{uri: 's3://b'" + more + "}";
        return parse_sidecar_config(
            "datasets:\n- {name: a, directory: /d, origin: " + origin + "}\n", no_env());
    };
    const auto source = [&parsed](const std::string& more) {
        return parsed(more).value().datasets.at(0).source;
    };
    EXPECT_EQ(source("").path_style, std::nullopt);
    EXPECT_EQ(source(", pathStyle: true").path_style, true);
    EXPECT_EQ(source(", pathStyle: false").path_style, false);
    EXPECT_EQ(source(", credentialsFile: /k").credentials_file, "/k");
    EXPECT_EQ(
        parsed(", credentialsFile: /k, credentialsDirectory: /c").error().message,
        "datasets[0].origin.credentialsFile: stands beside credentialsDirectory: say one of them");
}

Result<SidecarConfig> with_peers(const std::string& peers, const std::string& pod_ip) {
    return parse_sidecar_config(
        kLaptop + ("peers: " + peers), [&](const char* name) -> std::optional<std::string> {
            return std::string{name} == "POD_IP" && !pod_ip.empty() ? std::optional(pod_ip)
                                                                    : std::nullopt;
        });
}

TEST(SidecarConfig, PeerAddressIsThePodsUnlessGiven) {
    const auto address = [](const std::string& peers, const std::string& pod_ip) {
        return with_peers(peers, pod_ip).value().peers.address;
    };
    EXPECT_EQ(address("{listen: '[::]:7331'}", "10.0.0.1"), "10.0.0.1:7331");
    EXPECT_EQ(address("{listen: '[::]:7331'}", "fd00::1"), "[fd00::1]:7331");
    EXPECT_EQ(address("{listen: '[::]:7331', address: 'h:9'}", "10.0.0.1"), "h:9");
    EXPECT_EQ(address("{listen: '[::]:0'}", "10.0.0.1"), "10.0.0.1") << "the bound port";
    EXPECT_EQ(address("{listen: '[::]:0'}", "fd00::1"), "[fd00::1]");
    EXPECT_EQ(parse_sidecar_config(kLaptop, no_env())->peers, PeersConfig{});
}

TEST(SidecarConfig, PeersNeedAnAddress) {
    EXPECT_FALSE(with_peers("{listen: '[::]:7331'}", "").has_value());
    EXPECT_FALSE(with_peers("{listen: '7331'}", "10.0.0.1").has_value());
}

}  // namespace
}  // namespace stoker::sidecar
