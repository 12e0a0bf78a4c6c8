#include "operator/core/spec/validate.h"

#include <functional>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

void expect_one(
    const std::vector<FieldError>& errors, const std::string& path, const std::string& message) {
    ASSERT_EQ(errors.size(), 1U) << to_string(errors);
    EXPECT_EQ(errors.front().path, path);
    EXPECT_NE(errors.front().message.find(message), std::string::npos) << errors.front().message;
}

DatasetSource directory() {
    DatasetSource source;
    source.storage_uri = "file:///imagenet";
    source.volume = SourceVolume{"claim", std::nullopt};
    return source;
}

TEST(ValidateDataset, AcceptsBucketsAndDirectories) {
    Dataset dataset = make_dataset();
    EXPECT_TRUE(validate(dataset).empty());
    for (const std::string uri : {"s3://abc", "s3://a.b-c/", "s3://abc/a b/..x/ü%"}) {
        dataset.spec.sources[0].storage_uri = uri;
        EXPECT_EQ(to_string(validate(dataset)), "") << uri;
    }
    dataset.spec.sources = {directory()};
    EXPECT_EQ(to_string(validate(dataset)), "");
}

TEST(ValidateDataset, RefusesUnsupportedOrigins) {
    for (const std::string uri :
         {"",
          "/data",
          "ftp://h/a",
          "https://",
          "https://me@h/a",
          "https://h/a?b",
          "http://h/a b",
          "s3://",
          "s3:///a",
          "s3://ab",
          "s3://Abc",
          "s3://-abc",
          "s3://abc-",
          "s3://a_c",
          "gs://abc"}) {
        Dataset dataset = make_dataset();
        dataset.spec.sources[0].storage_uri = uri;
        expect_one(validate(dataset), "spec.sources[0].storageUri", "must be s3://");
    }
}

DatasetSource web_server() {
    DatasetSource source;
    source.storage_uri = "https://data.example.com:8443/a%20b/";
    source.index = "lists/index.txt";
    source.secret_ref = "server";
    source.ca_bundle = CaBundle{};
    return source;
}

TEST(ValidateDataset, AcceptsWebServers) {
    Dataset dataset = make_dataset();
    dataset.spec.sources = {web_server()};
    for (const DatasetFormat format :
         {DatasetFormat::kObjects, DatasetFormat::kTar, DatasetFormat::kBlocks}) {
        dataset.spec.format = format;
        EXPECT_EQ(to_string(validate(dataset)), "");
    }
}

TEST(ValidateDataset, AcceptsEveryConsistency) {
    Dataset dataset = make_dataset();
    dataset.spec.consistency = Consistency::kEtag;
    EXPECT_EQ(to_string(validate(dataset)), "");
    dataset.spec.consistency = Consistency::kTtl;
    dataset.spec.ttl_seconds = 1;
    EXPECT_EQ(to_string(validate(dataset)), "");
}

TEST(ValidateDataset, RefusesWhatWebServersDoNotHave) {
    const std::string source = "spec.sources[0]";
    const std::vector<std::tuple<std::function<void(DatasetSource&)>, std::string, std::string>>
        cases = {
            {[](DatasetSource& it) { it.region = "eu"; }, source, "belong to s3://"},
            {[](DatasetSource& it) { it.path_style = true; }, source, "belong to s3://"},
            {[](DatasetSource& it) { it.endpoint = "http://h"; }, source, "belong to s3://"},
            {[](DatasetSource& it) { it.storage_uri = "http://h/a"; }, source, "need https://"},
            {[](DatasetSource& it) { it.index = "../a"; }, source + ".index", "an object below"},
            {[](DatasetSource& it) { it.index = "a\n"; }, source + ".index", "an object below"},
            {[](DatasetSource& it) { it.storage_uri = "https://h/%2e./a"; },
             source + ".storageUri",
             "must be s3://"},
        };
    for (const auto& [spoil, path, message] : cases) {
        Dataset dataset = make_dataset();
        dataset.spec.sources = {web_server()};
        spoil(dataset.spec.sources.front());
        expect_one(validate(dataset), path, message);
    }
    Dataset bucket = make_dataset();
    bucket.spec.sources.front().index = "index.txt";
    expect_one(validate(bucket), source + ".index", "belongs to an http source");
}

TEST(ValidateDataset, RefusesPathsThatLeadOutOfTheOrigin) {
    Dataset dataset = make_dataset();
    for (const std::string uri : {"s3://abc/../x", "s3://abc/.", "s3://abc/a/./b"}) {
        dataset.spec.sources[0].storage_uri = uri;
        expect_one(validate(dataset), "spec.sources[0].storageUri", ". or ..");
    }
}

TEST(ValidateDataset, RefusesIncompatibleFields) {
    struct Case {
        std::function<void(Dataset&)> spoil;
        std::string path;
        std::string message;
    };

    const std::vector<Case> cases = {
        {[](Dataset& d) { d.spec.sources.clear(); }, "spec.sources", "missing"},
        {[](Dataset& d) { d.spec.sources.push_back(d.spec.sources[0]); },
         "spec.sources",
         "more than one"},
        {[](Dataset& d) {
             d.spec.sources[0].volume = SourceVolume{"c", std::nullopt};
         },
         "spec.sources[0].volume",
         "belongs to a directory"},
        {[](Dataset& d) {
             d.spec.sources = {directory()};
             d.spec.sources[0].volume.reset();
         },
         "spec.sources[0].volume",
         "belongs to a directory"},
        {[](Dataset& d) {
             d.spec.sources = {directory()};
             d.spec.sources[0].region = "r";
         },
         "spec.sources[0]",
         "belong to a server"},
        {[](Dataset& d) {
             d.spec.sources = {directory()};
             d.spec.sources[0].volume->host_path = "/x";
         },
         "spec.sources[0].volume",
         "exactly one"},
        {[](Dataset& d) {
             d.spec.sources = {directory()};
             d.spec.sources[0].volume = SourceVolume{std::nullopt, "/a/../b"};
         },
         "spec.sources[0].volume.hostPath.path",
         ".."},
        {[](Dataset& d) { d.spec.sources[0].endpoint = "minio:9000"; },
         "spec.sources[0].endpoint",
         "http://"},
        {[](Dataset& d) { d.spec.block_size = mib(8); }, "spec.blockSize", "belongs to format"},
        {[](Dataset& d) {
             d.spec.format = DatasetFormat::kBlocks;
             d.spec.block_size = kib(512);
         },
         "spec.blockSize",
         "between 1Mi and 32Mi"},
        {[](Dataset& d) { d.spec.format = DatasetFormat::kRecords; },
         "spec.records",
         "set both or neither"},
        {[](Dataset& d) {
             d.spec.records = {10, ""};
         },
         "spec.records",
         "set both or neither"},
        {[](Dataset& d) {
             d.spec.format = DatasetFormat::kRecords;
             d.spec.records = {(std::int64_t{1} << 30U) + 1, ""};
         },
         "spec.records.bytes",
         "between 1 and 1073741824"},
        {[](Dataset& d) { d.spec.consistency = Consistency::kTtl; },
         "spec.consistency",
         "needs ttlSeconds"},
        {[](Dataset& d) { d.spec.ttl_seconds = 5; }, "spec.consistency", "must leave it out"},
        {[](Dataset& d) {
             d.spec.consistency = Consistency::kEtag;
             d.spec.ttl_seconds = 5;
         },
         "spec.consistency",
         "must leave it out"},
        {[](Dataset& d) {
             d.spec.consistency = Consistency::kTtl;
             d.spec.ttl_seconds = 0;
         },
         "spec.consistency.ttlSeconds",
         "1 or more"},
        {[](Dataset& d) {
             d.spec.sources = {directory()};
             d.spec.shared_with = LabelSelector{};
         },
         "spec.sharing",
         "from its own namespace only"},
        {[](Dataset& d) {
             d.spec.shared_with = LabelSelector{{}, {{"team", LabelOperator::kIn, {}}}};
         },
         "spec.sharing.namespaceSelector.matchExpressions[team]",
         "need values"},
        {[](Dataset& d) {
             d.spec.shared_with = LabelSelector{{}, {{"team", LabelOperator::kExists, {"a"}}}};
         },
         "spec.sharing.namespaceSelector.matchExpressions[team]",
         "have none"},
        {[](Dataset& d) { d.spec.retention_after_last_use_seconds = -1; },
         "spec.retention.afterLastUseSeconds",
         "0 or more"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.path + " " + c.message);
        Dataset dataset = make_dataset();
        c.spoil(dataset);
        expect_one(validate(dataset), c.path, c.message);
    }
}

TEST(ValidateDataset, AcceptsSharingOfOriginsThatAllNamespacesCanReach) {
    Dataset dataset = make_dataset();
    dataset.spec.shared_with = LabelSelector{
        {{"team", "vision"}},
        {{"a", LabelOperator::kNotIn, {"b"}}, {"c", LabelOperator::kDoesNotExist, {}}}};
    EXPECT_TRUE(validate(dataset).empty());
    dataset.spec.sources = {directory()};
    dataset.spec.sources[0].volume = SourceVolume{std::nullopt, "/mnt/lustre"};
    EXPECT_TRUE(validate(dataset).empty());
}

TEST(ValidateCachePool, RefusesUnsupportedFields) {
    struct Case {
        std::function<void(CachePool&)> spoil;
        std::string path;
        std::string message;
    };

    const std::vector<Case> cases = {
        {[](CachePool& p) { p.spec.host_path = ""; }, "spec.volume", "hostPath is missing"},
        {[](CachePool& p) { p.spec.host_path = "mnt"; }, "spec.volume.hostPath.path", "absolute"},
        {[](CachePool& p) { p.spec.host_path = "//"; }, "spec.volume.hostPath.path", "absolute"},
        {[](CachePool& p) { p.spec.host_path = "/a/../b"; },
         "spec.volume.hostPath.path",
         "absolute"},
        {[](CachePool& p) { p.spec.host_path = "/mnt/"; }, "spec.volume.hostPath.path", "absolute"},
        {[](CachePool& p) { p.spec.host_path = "/var/lib/kubelet"; },
         "spec.volume.hostPath.path",
         "directory of the system"},
        {[](CachePool& p) { p.spec.has_csi = true; }, "spec.volume.csi", "does not work yet"},
        {[](CachePool& p) { p.spec.has_claim_template = true; },
         "spec.volume.persistentVolumeClaimTemplate",
         "does not work yet"},
        {[](CachePool& p) { p.spec.medium = Medium::kMemory; }, "spec.medium", "does not work yet"},
        {[](CachePool& p) { p.spec.origin_bandwidth = Bytes::zero(); },
         "spec.originBandwidth",
         "originBandwidth must be more than 0"},
        {[](CachePool& p) { p.spec.capacity_per_node = Bytes::zero(); },
         "spec.capacityPerNode",
         "more than 0"},
        {[](CachePool& p) { p.spec.price_per_gib = "-1"; },
         "spec.originPrice.perGiB",
         "must be a number"},
        {[](CachePool& p) { p.spec.price_per_thousand_requests = "nan"; },
         "spec.originPrice.perThousandRequests",
         "must be a number"},
        {[](CachePool& p) { p.spec.default_quota.lending_limit = gib(1); },
         "spec.defaultQuota.lendingLimit",
         "must not be more than nominalQuota"},
    };
    EXPECT_TRUE(validate(make_pool()).empty());
    for (const Case& c : cases) {
        SCOPED_TRACE(c.path + " " + c.message);
        CachePool pool = make_pool();
        c.spoil(pool);
        expect_one(validate(pool), c.path, c.message);
    }
}

TEST(ValidateCacheQuota, RefusesUnsupportedFields) {
    const CacheQuota good = make_quota("q", "nvme", Bytes::zero());
    EXPECT_TRUE(validate(good).empty());
    CacheQuota quota = good;
    quota.spec.pool_ref = "";
    expect_one(validate(quota), "spec.poolRef.name", "missing");
    quota = good;
    quota.spec.nominal_quota = gib(1);
    quota.spec.lending_limit = gib(2);
    expect_one(validate(quota), "spec.lendingLimit", "must not be more than nominalQuota");
    for (const std::string weight : {"-1", "nan", "2x", "inf"}) {
        quota = good;
        quota.spec.fair_sharing = FairSharingSpec{weight};
        expect_one(validate(quota), "spec.fairSharing.weight", "must be a number");
    }
    quota = good;
    quota.spec.reclaim = ReclaimSpec{ReclaimPolicy::kAny, -1};
    expect_one(validate(quota), "spec.reclaim.gracePeriodSeconds", "must be 0 or more");
}

TEST(ValidateCacheQuota, AcceptsBorrowingAndLending) {
    CacheQuota quota = make_quota("q", "nvme", gib(2));
    quota.spec.borrowing_limit = gib(100);
    quota.spec.lending_limit = gib(2);
    quota.spec.reclaim = ReclaimSpec{ReclaimPolicy::kNever, 30};
    for (const std::string weight : {"", "0", "2", "0.5"}) {
        quota.spec.fair_sharing = FairSharingSpec{weight};
        EXPECT_TRUE(validate(quota).empty()) << weight;
    }
}

}  // namespace
}  // namespace stoker::control
