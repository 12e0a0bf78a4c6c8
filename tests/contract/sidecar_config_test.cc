// The sidecar parses STOKER_SIDECAR_CONFIG, key by key, as the operator writes it.

#include "sidecar/config/sidecar_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "operator/api/sidecar_config.h"

namespace stoker {
namespace {

control::SidecarConfig written() {
    control::SidecarConfig config;
    config.socket = "/stoker/run/stoker.sock";
    config.window_bytes = mib(256);
    config.reserved_free_percent = 5;
    config.http_listen = "[::]:9455";
    config.s3_listen = "127.0.0.1:9711";
    config.control_endpoint = "stoker-control.stoker-system.svc:9443";
    config.control_token_file = "/stoker/token/token";
    config.training_job = "resnet";
    config.training_job_uid = "uid-1";
    config.end_when_idle_seconds = 600;
    config.datasets = {
        {"train",
         "uid-2",
         "/stoker/node/train",
         "/stoker/files/train/files.sock",
         {"s3://bucket/a b/ü%",
          "http://s3:9000",
          "eu-west-1",
          false,
          "/stoker/credentials/train",
          "/stoker/ca/train/ca.crt"},
         {},
         {},
         {}},
        {"val",
         "uid-3",
         "/stoker/node/val",
         "",
         {"file:///stoker/origin/val/d", "", "", false, ""},
         {},
         {},
         {}}};
    return config;
}

Result<sidecar::SidecarConfig> read(const control::SidecarConfig& config) {
    return sidecar::parse_sidecar_config(
        control::to_json(config).text(),
        [](const char* name) -> std::optional<std::string> { return "$" + std::string{name}; });
}

TEST(SidecarConfigContract, SidecarReadsTheOperatorsSettings) {
    const Result<sidecar::SidecarConfig> config = read(written());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->socket_path, "/stoker/run/stoker.sock");
    EXPECT_EQ(config->http_listen, "[::]:9455");
    EXPECT_EQ(config->s3_listen, "127.0.0.1:9711");
    EXPECT_EQ(config->control.endpoint, "stoker-control.stoker-system.svc:9443");
    EXPECT_EQ(config->control.token_file, "/stoker/token/token");
    EXPECT_EQ(config->job.training_job, "resnet");
    EXPECT_EQ(config->job.training_job_uid, "uid-1");
    ASSERT_EQ(config->datasets.size(), 2U);
    const sidecar::DatasetConfig& train = config->datasets[0];
    EXPECT_EQ(train.name, "train");
    EXPECT_EQ(train.uid, "uid-2");
    EXPECT_EQ(train.directory, "/stoker/node/train");
    EXPECT_EQ(train.client_directory, "/stoker/node/train/data");
    EXPECT_EQ(train.files_socket, "/stoker/files/train/files.sock");
    EXPECT_EQ(train.window_bytes, mib(256));
    EXPECT_DOUBLE_EQ(train.reserved_free, 0.05);
    EXPECT_EQ(train.source.uri, "s3://bucket/a b/ü%");
    EXPECT_EQ(train.source.endpoint, "http://s3:9000");
    EXPECT_EQ(train.source.region, "eu-west-1");
    EXPECT_EQ(train.source.path_style, false);
    EXPECT_EQ(train.source.credentials_directory, "/stoker/credentials/train");
    EXPECT_EQ(train.source.ca_file, "/stoker/ca/train/ca.crt");
    EXPECT_EQ(config->datasets[1].source.uri, "file:///stoker/origin/val/d");
    EXPECT_EQ(config->datasets[1].source.region, "us-east-1");
}

TEST(SidecarConfigContract, TheLimitOfAListingsAgeArrives) {
    control::SidecarConfig config = written();
    EXPECT_EQ(read(config)->datasets[0].listing_age_max, std::nullopt);
    for (const std::int64_t seconds : {std::int64_t{0}, std::int64_t{2'147'483'647}}) {
        config.datasets[0].listing_age_seconds_max = seconds;
        const Result<sidecar::SidecarConfig> got = read(config);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(got->datasets[0].listing_age_max, std::chrono::seconds{seconds});
    }
}

TEST(SidecarConfigContract, JobWithoutAContractAllowsNoChange) {
    const Result<sidecar::SidecarConfig> config = read(written());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->datasets[0].contract, (sidecar::ContractTerms{"exact", {}}));
    EXPECT_EQ(config->datasets[0].eviction, sidecar::EvictionKind::kAuto);
}

TEST(SidecarConfigContract, EveryParameterArrivesWithItsBounds) {
    const auto arrives = [](const domain::ContractParameter& row, double value) {
        control::SidecarConfig config = written();
        const std::string name{row.name};
        const auto* place = std::ranges::find(domain::kContracts, row.contract);
        config.datasets[0].contract =
            static_cast<control::Contract>(place - domain::kContracts.begin());
        config.datasets[0].parameters.numbers = {{name, value}};
        const Result<sidecar::SidecarConfig> got = read(config);
        return got && got->datasets[0].contract->parameters.at(name) == value;
    };
    for (const domain::ContractParameter& row : domain::kContractParameters) {
        if (!row.is_of_the_job(row.contract) || row.is_word()) {
            continue;
        }
        EXPECT_TRUE(arrives(row, row.least)) << row.name;
        EXPECT_TRUE(arrives(row, row.most)) << row.name;
        EXPECT_FALSE(arrives(row, row.most + 1)) << row.name;
        EXPECT_FALSE(arrives(row, row.least - 1)) << row.name;
        EXPECT_EQ(arrives(row, row.most - 0.25), row.step == 0) << row.name;
    }
}

TEST(SidecarConfigContract, ParametersWithNamedValuesArriveAsTheValuesIndices) {
    control::SidecarConfig config = written();
    config.datasets[0].contract = control::Contract::kImportance;
    config.datasets[0].parameters.words = {{"family", "Iowa"}, {"redundancy", "Repeat"}};
    config.datasets[1].eviction = control::EvictionPolicy::kLru;
    const Result<sidecar::SidecarConfig> got = read(config);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(
        got->datasets[0].contract,
        (sidecar::ContractTerms{"importance", {{"family", 1}, {"redundancy", 2}}}));
    EXPECT_EQ(got->datasets[1].eviction, sidecar::EvictionKind::kLru);
}

TEST(SidecarConfigContract, FormatsArriveWithTheSizeOfBlocks) {
    control::SidecarConfig config = written();
    config.datasets[0].origin.format = control::DatasetFormat::kBlocks;
    config.datasets[0].origin.block_size = mib(4);
    config.datasets[1].origin.format = control::DatasetFormat::kChunks;
    const Result<sidecar::SidecarConfig> got = read(config);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->datasets[0].source.format, domain::SampleFormat::kBlocks);
    EXPECT_EQ(got->datasets[0].source.block_bytes, mib(4));
    EXPECT_EQ(got->datasets[1].source.format, domain::SampleFormat::kChunks);
    config.datasets[0].origin.block_size.reset();
    EXPECT_EQ(read(config)->datasets[0].source.block_bytes, mib(8));
}

TEST(SidecarConfigContract, EveryFormatArrives) {
    using Choice = control::DatasetFormat;
    using Format = domain::SampleFormat;
    for (const auto& [choice, format] :
         {std::pair{Choice::kObjects, Format::kObjects},
          {Choice::kTar, Format::kTar},
          {Choice::kRecords, Format::kRecords},
          {Choice::kMegatron, Format::kMegatron},
          {Choice::kTfRecord, Format::kTfRecord},
          {Choice::kChunks, Format::kChunks},
          {Choice::kBlocks, Format::kBlocks}}) {
        control::SidecarConfig config = written();
        config.datasets[0].origin.format = choice;
        if (choice == Choice::kRecords) {
            config.datasets[0].origin.records = control::DatasetRecords{3073, ".bin"};
        }
        const Result<sidecar::SidecarConfig> got = read(config);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(got->datasets[0].source.format, format);
        EXPECT_EQ(
            got->datasets[0].source.records,
            choice == Choice::kRecords ? (domain::RecordRows{3073, ".bin"}) : domain::RecordRows{});
    }
}

// A sidecar with an operator endpoint admits nothing new before the operator's first grant,
// independent of its settings.
TEST(SidecarConfigContract, LeavesGrantsToTheOperator) {
    const Result<sidecar::SidecarConfig> config = read(written());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_FALSE(config->control.endpoint.empty());
    EXPECT_TRUE(config->datasets.at(0).grant_bytes.is_unlimited());
}

TEST(SidecarConfigContract, LeavesThePodsIdentityToTheEnvironment) {
    const Result<sidecar::SidecarConfig> config = read(written());
    ASSERT_TRUE(config);
    EXPECT_EQ(config->job.pod_namespace, "$POD_NAMESPACE");
    EXPECT_EQ(config->job.pod, "$POD_NAME");
    EXPECT_EQ(config->job.node, "$NODE_NAME");
    EXPECT_EQ(config->job.attempt_uid, "$ATTEMPT_UID");
    EXPECT_EQ(config->control.ca_pem, "$STOKER_CONTROL_CA");
}

}  // namespace
}  // namespace stoker
