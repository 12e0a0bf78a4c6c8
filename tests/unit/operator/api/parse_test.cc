#include <string>

#include <gtest/gtest.h>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/training_job.h"

namespace stoker::control {
namespace {

TEST(ParseTrainingJob, AppliesTheCrdsDefaults) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({
        "metadata": {"name": "digits", "namespace": "team", "uid": "u1", "generation": 3,
                     "creationTimestamp": "1970-01-01T00:00:07Z"},
        "spec": {"trainer": {"image": "train:1"},
                 "datasets": [{"name": "train", "datasetRef": {"name": "digits"}}]}})");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->meta.key(), (ObjectKey{"team", "digits"}));
    EXPECT_EQ(job->meta.generation, 3);
    EXPECT_EQ(job->meta.created_at, WallTime{std::chrono::seconds{7}});
    EXPECT_EQ(job->spec.trainer.node_count, 1);
    EXPECT_EQ(job->spec.trainer.processes_per_node, "auto");
    EXPECT_EQ(job->spec.run_policy.backoff_limit, 3);
    EXPECT_FALSE(job->spec.suspend);
    EXPECT_EQ(job->spec.cache, CacheSpec{});
    EXPECT_EQ(job->spec.datasets.at(0).dataset_ref, "digits");
    EXPECT_FALSE(job->spec.datasets.at(0).storage_uri);
    EXPECT_EQ(job->spec.datasets.at(0).contract, Contract::kExact);
    EXPECT_EQ(job->status, TrainingJobStatus{});
}

TEST(ParseTrainingJob, AcceptsNumbersAndTextsWhereBothAreAllowed) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({"spec": {
        "trainer": {"image": "a", "numProcPerNode": 8,
                    "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8, "cpu": "500m"}}},
        "cache": {"mode": "Fixed", "maxBytes": 1073741824, "minBytes": "1.5Mi", "weight": 5}}})");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.trainer.processes_per_node, "8");
    EXPECT_EQ(
        job->spec.trainer.resources.limits, (TextMap{{"cpu", "500m"}, {"nvidia.com/gpu", "8"}}));
    EXPECT_EQ(job->spec.cache.max_bytes, gib(1));
    EXPECT_EQ(job->spec.cache.weight, 5);
    EXPECT_EQ(job->spec.cache.min_bytes, Bytes{1536 * 1024});
}

TEST(ParseTrainingJob, ReadsThePlacement) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({"spec": {
        "trainer": {"image": "a"},
        "datasets": [{"name": "a"},
                     {"name": "b", "placement": "Clairvoyant"},
                     {"name": "c", "placement": "Clairvoyant",
                      "clairvoyant": {"order": "Stoker", "seed": 9007199254740991,
                                      "dropLast": true}}]}})");
    ASSERT_TRUE(job) << job.error().message;
    const std::vector<JobDataset>& datasets = job->spec.datasets;
    EXPECT_EQ(datasets.at(0).placement, SamplePlacement::kHash);
    EXPECT_EQ(datasets.at(1).placement, SamplePlacement::kClairvoyant);
    EXPECT_FALSE(datasets.at(1).clairvoyant);
    EXPECT_EQ(
        datasets.at(2).clairvoyant,
        (ClairvoyantSpec{ReadOrder::kStoker, 9'007'199'254'740'991, true}));
}

TEST(ParseTrainingJob, ReadsTheParametersOfAContract) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({"spec": {
        "trainer": {"image": "a"},
        "datasets": [{"name": "train", "contract": "Importance",
                      "importance": {"family": "ICache", "beta": 0.33, "warmupEpochs": 5}}],
        "cache": {"evictionPolicy": "LFU"}}})");
    ASSERT_TRUE(job) << job.error().message;
    const JobDataset& dataset = job->spec.datasets.at(0);
    EXPECT_EQ(dataset.contract, Contract::kImportance);
    EXPECT_EQ(
        dataset.parameters,
        (std::map<Contract, ContractParameters>{
            {Contract::kImportance,
             {{{"beta", 0.33}, {"warmupEpochs", 5}}, {{"family", "ICache"}}}}}));
    EXPECT_EQ(job->spec.cache.eviction_policy, EvictionPolicy::kLfu);
    EXPECT_FALSE(parse_document<TrainingJob>(R"({"spec": {"trainer": {"image": "a"}, "datasets": [
        {"name": "train", "importance": {"beta": "much"}}]}})"));
}

TEST(ParseTrainingJob, KeepsOpaquePartsUnchanged) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({"spec": {
        "trainer": {"image": "a", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
        "podTemplate": {"spec": {
            "affinity": {"podAntiAffinity": {"deep": [1, {"b": null}]}},
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}}}})");
    ASSERT_TRUE(job) << job.error().message;
    const PodOverlay& pod = job->spec.pod_template;
    EXPECT_EQ(job->spec.trainer.env.at(0).value_from.text(), R"({"fieldRef":{"fieldPath":"x"}})");
    EXPECT_EQ(pod.affinity.text(), R"({"podAntiAffinity":{"deep":[1,{"b":null}]}})");
    EXPECT_EQ(pod.volumes.at(0).text(), R"({"emptyDir":{},"name":"data"})");
    EXPECT_EQ(pod.volume_names, std::vector<std::string>{"data"});
    EXPECT_EQ(pod.trainer.volume_mount_paths, std::vector<std::string>{"/d"});
}

TEST(ParseTrainingJob, IgnoresUnknownFields) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(
        R"({"apiVersion": "stoker.dev/v9", "extra": [1], "metadata": {"managedFields": [{"a": {}}]},
            "spec": {"trainer": {"image": "a", "later": true}, "new": {}}})");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.trainer.image, "a");
}

TEST(ParseTrainingJob, ReportsEveryWrongFieldWithItsPath) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(R"({"spec": {
        "trainer": {"image": 5, "numNodes": 1.5, "command": ["a", 1], "env": ["x"]},
        "datasets": [{"name": "a", "contract": "exact"}],
        "cache": {"maxBytes": "lots", "mode": false}}})");
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument);
    for (const std::string expected :
         {"spec.trainer.image: must be a text",
          "spec.trainer.numNodes: must be a whole number",
          "spec.trainer.command: must be a list of texts",
          "spec.trainer.env[0]: must be an object",
          "spec.datasets[0].contract: 'exact' is not an allowed value",
          "spec.cache.maxBytes: 'lots' is not a quantity",
          "spec.cache.mode: must be a text"}) {
        EXPECT_NE(job.error().message.find(expected), std::string::npos)
            << expected << " is not in " << job.error().message;
    }
}

TEST(ParseTrainingJob, TreatsNullAsAbsent) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(
        R"({"metadata": null, "spec": {"trainer": {"image": null}, "datasets": null, "cache": null}})");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec, TrainingJobSpec{});
}

TEST(ParseTrainingJob, RejectsGarbage) {
    const std::string deep(10'000, '[');
    for (const std::string& garbage :
         {std::string{},
          std::string{"null"},
          std::string{"[]"},
          std::string{"{"},
          std::string{"{\"a\":\"\\ud800\"}"},
          std::string{"\xff\xfe"},
          std::string(3, '\0'),
          deep}) {
        const Result<TrainingJob> job = parse_document<TrainingJob>(garbage);
        if (!job) {
            EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument);
        }
        EXPECT_TRUE(!job || garbage.starts_with("{\"a\"")) << garbage.substr(0, 20);
    }
}

TEST(ParseTrainingJob, RejectsCountsOutOfRange) {
    EXPECT_FALSE(parse_document<TrainingJob>(R"({"spec": {"trainer": {"numNodes": 3000000000}}})"));
    EXPECT_FALSE(parse_document<TrainingJob>(R"({"spec": {"trainer": {"numNodes": 1e30}}})"));
    EXPECT_FALSE(
        parse_document<TrainingJob>(R"({"metadata": {"generation": 99999999999999999999}})"));
}

TEST(ParseDataset, ReadsSourceVolumeAndSecret) {
    const Result<Dataset> dataset = parse_document<Dataset>(R"({"spec": {
        "sources": [{"storageUri": "s3://b/p", "endpoint": "http://h", "region": "r",
                     "pathStyle": false, "secretRef": {"name": "s"},
                     "volume": {"persistentVolumeClaim": {"claimName": "c"}}}],
        "format": "Tar", "consistency": {"mode": "TTL", "ttlSeconds": 5},
        "sharing": {"namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "k", "operator": "NotIn", "values": ["x", "y"]}]}},
        "retention": {"afterLastUseSeconds": 9}},
        "status": {"totalBytes": 12, "placements": [{"pool": "p", "node": "n", "bytes": 3}]}})");
    ASSERT_TRUE(dataset) << dataset.error().message;
    const DatasetSource& source = dataset->spec.sources.at(0);
    EXPECT_EQ(source.storage_uri, "s3://b/p");
    EXPECT_EQ(source.path_style, false);
    EXPECT_EQ(source.secret_ref, "s");
    EXPECT_EQ(source.volume, (SourceVolume{"c", std::nullopt}));
    EXPECT_EQ(dataset->spec.format, DatasetFormat::kTar);
    EXPECT_EQ(dataset->spec.consistency, Consistency::kTtl);
    EXPECT_EQ(
        dataset->spec.shared_with,
        (LabelSelector{{{"a", "b"}}, {{"k", LabelOperator::kNotIn, {"x", "y"}}}}));
    EXPECT_EQ(dataset->spec.retention_after_last_use_seconds, 9);
    EXPECT_EQ(dataset->status.total_bytes, 12);
    EXPECT_EQ(dataset->status.placements.at(0), (DatasetPlacement{"p", "n", 3, 0}));
}

TEST(ParseDataset, ReadsTheRowsOfRecords) {
    const Result<Dataset> dataset = parse_document<Dataset>(
        R"({"spec": {"format": "Records", "records": {"bytes": 3073, "suffix": ".bin"}}})");
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_EQ(dataset->spec.format, DatasetFormat::kRecords);
    EXPECT_EQ(dataset->spec.records, (DatasetRecords{3073, ".bin"}));
}

TEST(ParseDataset, DistinguishesAbsentPathStyle) {
    const Result<Dataset> dataset =
        parse_document<Dataset>(R"({"spec": {"sources": [{"storageUri": "s3://b/p"}]}})");
    ASSERT_TRUE(dataset);
    EXPECT_FALSE(dataset->spec.sources.at(0).path_style);
    EXPECT_FALSE(dataset->spec.sources.at(0).volume);
    EXPECT_FALSE(dataset->spec.shared_with);
    EXPECT_FALSE(dataset->status.total_bytes);
}

TEST(ParseDataset, DistinguishesEmptySelectorFromNone) {
    const std::string head = R"({"spec": {"sources": [], "sharing": )";
    EXPECT_EQ(
        parse_document<Dataset>(head + R"({"namespaceSelector": {}}}})")->spec.shared_with,
        LabelSelector{});
    EXPECT_FALSE(parse_document<Dataset>(head + "{}}}")->spec.shared_with);
}

TEST(ParseCachePool, ReadsPercentAndPolicy) {
    const Result<CachePool> pool = parse_document<CachePool>(R"({"spec": {
        "nodeSelector": {"a": "b"}, "volume": {"hostPath": {"path": "/mnt"}},
        "capacityPerNode": "1600Gi", "reservedFree": "20%", "stopPolicy": "Hold"}})");
    ASSERT_TRUE(pool) << pool.error().message;
    EXPECT_EQ(pool->spec.capacity_per_node, gib(1600));
    EXPECT_EQ(pool->spec.reserved_free_percent, 20);
    EXPECT_EQ(pool->spec.stop_policy, StopPolicy::kHold);
    EXPECT_EQ(pool->spec.host_path, "/mnt");
    EXPECT_FALSE(pool->spec.has_csi);
    EXPECT_EQ(parse_document<CachePool>("{}")->spec.reserved_free_percent, 15);
}

TEST(ParseCachePool, ReadsObjectiveAndOriginBandwidth) {
    const Result<CachePool> plain = parse_document<CachePool>("{}");
    EXPECT_EQ(plain->spec.allocation, Objective::kThroughput);
    EXPECT_FALSE(plain->spec.origin_bandwidth);
    const Result<CachePool> told =
        parse_document<CachePool>(R"({"spec": {"allocation": "Even", "originBandwidth": "2Gi"}})");
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(told->spec.allocation, Objective::kEven);
    EXPECT_EQ(told->spec.origin_bandwidth, gib(2));
    EXPECT_FALSE(parse_document<CachePool>(R"({"spec": {"allocation": "Fair"}})"));
    const Result<CachePool> dear = parse_document<CachePool>(
        R"({"spec": {"originPrice": {"perGiB": "0.09", "perThousandRequests": 2}}})");
    ASSERT_TRUE(dear) << dear.error().message;
    EXPECT_EQ(dear->spec.price_per_gib, "0.09");
    EXPECT_EQ(dear->spec.price_per_thousand_requests, "2");
    EXPECT_EQ(dear->spec.default_quota, DefaultQuotaSpec{});
    const auto open = parse_document<CachePool>(
        R"({"spec": {"defaultQuota": {"nominalQuota": "1Gi", "borrowingLimit": 0}}})");
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_EQ(open->spec.default_quota, (DefaultQuotaSpec{gib(1), Bytes::zero(), std::nullopt}));
    EXPECT_FALSE(parse_document<CachePool>(R"({"spec": {"originBandwidth": "-1"}})"));
}

TEST(ParseCachePool, RejectsReserveThatIsNotAPercentage) {
    for (const std::string reserve : {"", "%", "15", "91%", "-1%", "15 %", "1Gi"}) {
        EXPECT_FALSE(parse_document<CachePool>(R"({"spec": {"reservedFree": ")" + reserve + "\"}}"))
            << reserve;
    }
}

TEST(ParseCacheQuota, ReadsLimitsAndWhichAreSet) {
    const Result<CacheQuota> quota = parse_document<CacheQuota>(R"({"spec": {
        "poolRef": {"name": "p"}, "nominalQuota": "2Ti", "lendingLimit": 5,
        "fairSharing": {"weight": 2}}})");
    ASSERT_TRUE(quota) << quota.error().message;
    EXPECT_EQ(quota->spec.pool_ref, "p");
    EXPECT_EQ(quota->spec.nominal_quota, gib(2048));
    EXPECT_EQ(quota->spec.lending_limit, Bytes{5});
    EXPECT_FALSE(quota->spec.borrowing_limit);
    EXPECT_EQ(quota->spec.fair_sharing, FairSharingSpec{"2"});
    EXPECT_FALSE(quota->spec.reclaim);
    const auto never = parse_document<CacheQuota>(R"({"spec": {"reclaim": {"policy": "Never"}}})");
    EXPECT_EQ(never->spec.reclaim->policy, ReclaimPolicy::kNever);
    EXPECT_FALSE(parse_document<CacheQuota>(R"({"spec": {"reclaim": {"policy": "Sometimes"}}})"));
}

}  // namespace
}  // namespace stoker::control
