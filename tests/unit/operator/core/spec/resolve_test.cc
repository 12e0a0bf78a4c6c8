#include "operator/core/spec/resolve.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

TEST(ResolveDatasets, FindsTheDatasetByNameAndTakesItsSize) {
    Dataset dataset = make_dataset();
    dataset.status.total_bytes = 77;
    const ResolvedDatasets resolved =
        resolve_datasets(make_training_job(), {make_dataset("other"), dataset});
    ASSERT_TRUE(resolved.blocker.empty()) << resolved.blocker.message;
    ASSERT_EQ(resolved.datasets.size(), 1U);
    EXPECT_EQ(resolved.datasets[0].name, "train");
    EXPECT_EQ(resolved.datasets[0].uid, "uid-imagenet");
    EXPECT_EQ(resolved.datasets[0].source.storage_uri, "s3://imagenet");
    EXPECT_EQ(resolved.datasets[0].total, Bytes{77});
}

TEST(ResolveDatasets, TakesTheShuffleOfPlacementClairvoyant) {
    TrainingJob job = make_training_job();
    job.spec.datasets[0].clairvoyant = {ReadOrder::kStoker, 7, true};
    const auto shuffle = [&] {
        return resolve_datasets(job, {make_dataset()}).datasets[0].clairvoyant;
    };
    EXPECT_EQ(shuffle(), std::nullopt) << "placement Hash";
    job.spec.datasets[0].placement = SamplePlacement::kClairvoyant;
    EXPECT_EQ(shuffle(), (ClairvoyantSpec{ReadOrder::kStoker, 7, true}));
    job.spec.datasets[0].clairvoyant.reset();
    EXPECT_EQ(shuffle(), (ClairvoyantSpec{ReadOrder::kTorchDistributed, 0, false}));
}

TEST(ResolveDatasets, ConsistencyIsTheLargestAgeOfAListing) {
    Dataset dataset = make_dataset();
    EXPECT_EQ(resolve_dataset(dataset).listing_age_seconds_max, std::nullopt);
    dataset.spec.consistency = Consistency::kEtag;
    EXPECT_EQ(resolve_dataset(dataset).listing_age_seconds_max, 0);
    dataset.spec.consistency = Consistency::kTtl;
    dataset.spec.ttl_seconds = 3600;
    EXPECT_EQ(resolve_dataset(dataset).listing_age_seconds_max, 3600);
}

TEST(ResolveDatasets, NamesTheMissingDataset) {
    const ResolvedDatasets resolved = resolve_datasets(make_training_job(), {});
    EXPECT_EQ(resolved.blocker.reason, "DatasetNotFound");
    EXPECT_EQ(
        resolved.blocker.message,
        "Dataset imagenet does not exist in namespace team; the job starts when it appears.");
}

TEST(ResolveDatasets, DoesNotUseAnInvalidDataset) {
    Dataset dataset = make_dataset();
    dataset.spec.sources.clear();
    EXPECT_EQ(resolve_datasets(make_training_job(), {dataset}).blocker.reason, "DatasetInvalid");
}

TEST(ResolveDatasets, DerivesTheUidOfAnInlineOriginFromNamespaceAndOrigin) {
    TrainingJob job = make_training_job();
    job.spec.datasets[0].dataset_ref.reset();
    job.spec.datasets[0].storage_uri = "s3://bucket/a";
    job.spec.datasets[0].secret_ref = "keys";
    const ResolvedDatasets resolved = resolve_datasets(job, {});
    ASSERT_TRUE(resolved.blocker.empty());
    EXPECT_EQ(resolved.datasets[0].uid, inline_dataset_uid("team", job.spec.datasets[0]));
    EXPECT_EQ(resolved.datasets[0].source.secret_ref, "keys");
}

TEST(InlineDatasetUid, DependsOnNamespaceOriginEndpointAndSecret) {
    JobDataset dataset;
    dataset.storage_uri = "s3://a";
    dataset.secret_ref = "keys";
    const std::string uid = inline_dataset_uid("team", dataset);
    EXPECT_EQ(uid.size(), 23U);
    EXPECT_NE(inline_dataset_uid("other", dataset), uid);
    JobDataset another = dataset;
    another.storage_uri = "s3://b";
    EXPECT_NE(inline_dataset_uid("team", another), uid);
    another = dataset;
    another.endpoint = "http://minio:9000";
    EXPECT_NE(inline_dataset_uid("team", another), uid);
    another = dataset;
    another.secret_ref = "others";
    EXPECT_NE(inline_dataset_uid("team", another), uid);
    another.secret_ref.reset();
    EXPECT_NE(inline_dataset_uid("team", another), uid);
    another = dataset;
    another.name = "val";
    EXPECT_EQ(inline_dataset_uid("team", another), uid);
}

TEST(ResolveDatasets, RequiresOneSecretForAllDatasets) {
    TrainingJob job = make_training_job();
    job.spec.datasets.push_back(job.spec.datasets[0]);
    job.spec.datasets[1].name = "val";
    job.spec.datasets[1].dataset_ref = "other";
    Dataset first = make_dataset();
    Dataset second = make_dataset("other");
    first.spec.sources[0].secret_ref = "keys";
    EXPECT_TRUE(resolve_datasets(job, {first, second}).blocker.empty());
    second.spec.sources[0].secret_ref = "keys";
    EXPECT_TRUE(resolve_datasets(job, {first, second}).blocker.empty());
    second.spec.sources[0].secret_ref = "more-keys";
    const Blocker blocker = resolve_datasets(job, {first, second}).blocker;
    EXPECT_EQ(blocker.reason, "SecretsDiffer");
    EXPECT_NE(blocker.message.find("keys, more-keys"), std::string::npos);
    // The Secret of another namespace's Dataset does not count for the job.
    job.spec.datasets[1].dataset_ref_namespace = "data";
    second.meta.ns = "data";
    second.spec.shared_with = LabelSelector{};
    EXPECT_TRUE(resolve_datasets(job, {first, second}, TextMap{}).blocker.empty());
}

// The blocker of a job that reads imagenet and other, with imagenet by S3.
Blocker blocker_of(DatasetAccess access, const Dataset& imagenet, const Dataset& other) {
    TrainingJob job = make_training_job();
    job.spec.datasets.push_back(job.spec.datasets[0]);
    job.spec.datasets[0].access = access;
    job.spec.datasets[1].name = "val";
    job.spec.datasets[1].dataset_ref = "other";
    return resolve_datasets(job, {imagenet, other}).blocker;
}

Blocker blocker_of_s3(const Dataset& imagenet, const Dataset& other) {
    return blocker_of(DatasetAccess::kS3, imagenet, other);
}

TEST(ResolveDatasets, AccessS3NeedsAnObjectStore) {
    const Dataset plain = make_dataset();
    Dataset directory = make_dataset();
    directory.spec.sources[0] = {"file:///d", "", "", {}, {}, SourceVolume{"claim", {}}};
    Dataset chunks = make_dataset();
    chunks.spec.format = DatasetFormat::kChunks;
    Dataset other = make_dataset("other");
    EXPECT_TRUE(blocker_of_s3(plain, other).empty());
    other.spec.sources[0] = directory.spec.sources[0];
    EXPECT_TRUE(blocker_of_s3(plain, other).empty()) << "val is read with access SDK";
    const Blocker blocker = blocker_of_s3(directory, other);
    EXPECT_EQ(blocker.reason, "AccessUnsupported");
    EXPECT_EQ(
        blocker.message,
        "Dataset train cannot be read with access S3, because its source is a directory; use "
        "access SDK.");
    EXPECT_TRUE(blocker_of_s3(chunks, other).empty());
}

TEST(ResolveDatasets, BlocksNeedAccessS3) {
    Dataset blocks = make_dataset();
    blocks.spec.format = DatasetFormat::kBlocks;
    blocks.spec.block_size = mib(4);
    EXPECT_TRUE(blocker_of_s3(blocks, make_dataset("other")).empty());
    TrainingJob job = make_training_job();
    EXPECT_EQ(
        resolve_datasets(job, {blocks}).blocker,
        (Blocker{
            "AccessUnsupported",
            "Dataset train has format Blocks, which the library does not read; use access S3 or "
            "Files."}));
    job.spec.datasets[0].access = DatasetAccess::kS3;
    const ResolvedDataset resolved = resolve_datasets(job, {blocks}).datasets.at(0);
    EXPECT_EQ(resolved.format, DatasetFormat::kBlocks);
    EXPECT_EQ(resolved.block_size, mib(4));
}

TEST(ResolveDatasets, ShardsNeedAccessSdk) {
    for (const auto& [format, name] :
         {std::pair{DatasetFormat::kTar, "Tar"},
          {DatasetFormat::kRecords, "Records"},
          {DatasetFormat::kMegatron, "Megatron"},
          {DatasetFormat::kTfRecord, "TFRecord"}}) {
        Dataset shards = make_dataset();
        shards.spec.format = format;
        if (format == DatasetFormat::kRecords) {
            shards.spec.records = DatasetRecords{10, ".bin"};
        }
        for (const DatasetAccess access : {DatasetAccess::kS3, DatasetAccess::kFiles}) {
            EXPECT_EQ(
                blocker_of(access, shards, make_dataset("other")),
                (Blocker{
                    "AccessUnsupported",
                    std::string{"Dataset train has format "} + name +
                        ", whose samples the library reads; use access SDK, or for other "
                        "programs a Dataset of format Blocks."}));
        }
        const auto resolved = resolve_datasets(make_training_job(), {shards}).datasets.at(0);
        EXPECT_EQ(resolved.format, format);
        EXPECT_EQ(resolved.records, shards.spec.records);
    }
}

TEST(ResolveDatasets, AccessS3NeedsOneEndpointForEachBucket) {
    const auto at =
        [](const std::string& name, const std::string& uri, const std::string& endpoint) {
            Dataset dataset = make_dataset(name);
            dataset.spec.sources[0].storage_uri = uri;
            dataset.spec.sources[0].endpoint = endpoint;
            return dataset;
        };
    const Dataset train = at("imagenet", "s3://data/train", "http://a:9000");
    EXPECT_EQ(
        blocker_of_s3(train, at("other", "s3://data/val", "http://b:9000")).message,
        "Datasets train and val are in buckets of the same name at different endpoints, which "
        "access S3 "
        "cannot tell apart; use access SDK.");
    EXPECT_TRUE(blocker_of_s3(train, at("other", "s3://data/val", "http://a:9000")).empty());
    EXPECT_TRUE(blocker_of_s3(train, at("other", "s3://data2", "http://b:9000")).empty());
}

// Dataset imagenet of namespace "data", shared with namespaces labelled team: vision, and a job of
// namespace "team".
struct Shared {
    Shared() {
        dataset.meta.ns = "data";
        dataset.spec.shared_with = LabelSelector{{{"team", "vision"}}, {}};
        job.spec.datasets[0].dataset_ref_namespace = "data";
    }

    [[nodiscard]] ResolvedDatasets resolve(const std::optional<TextMap>& labels) const {
        return resolve_datasets(job, {dataset}, labels);
    }

    Dataset dataset = make_dataset();
    TrainingJob job = make_training_job();
    TextMap vision{{"team", "vision"}};
};

TEST(ResolveDatasets, FindsASharedDatasetAndItsNamespace) {
    const Shared shared;
    const ResolvedDatasets resolved = shared.resolve(shared.vision);
    ASSERT_TRUE(resolved.blocker.empty()) << resolved.blocker.message;
    EXPECT_FALSE(resolved.goes_on);
    EXPECT_EQ(resolved.datasets.at(0).ns, "data");
    EXPECT_EQ(resolved.datasets.at(0).uid, "uid-imagenet");
    EXPECT_TRUE(has_dataset(resolved, "uid-imagenet"));
    EXPECT_EQ(resolve_datasets(make_training_job(), {make_dataset()}).datasets.at(0).ns, "team");
}

TEST(ResolveDatasets, HidesWhetherAnUnsharedDatasetExists) {
    Shared shared;
    const Blocker refused = shared.resolve(TextMap{{"team", "nlp"}}).blocker;
    EXPECT_EQ(refused.reason, kNotShared);
    EXPECT_EQ(
        refused.message,
        "Dataset data/imagenet is not shared with namespace team. Its owner shares it with "
        "spec.sharing.namespaceSelector, which must select the labels of namespace team; the job "
        "starts then.");
    EXPECT_EQ(resolve_datasets(shared.job, {}, shared.vision).blocker, refused) << "missing";
    EXPECT_EQ(shared.resolve(std::nullopt).blocker, refused) << "labels that are not known yet";
    shared.dataset.spec.sources.clear();
    EXPECT_EQ(shared.resolve(TextMap{}).blocker, refused) << "invalid";
    shared.dataset.spec.shared_with.reset();
    EXPECT_EQ(shared.resolve(shared.vision).blocker, refused) << "shared with nobody";
    EXPECT_FALSE(has_dataset(shared.resolve(shared.vision), "uid-imagenet"));
}

TEST(ResolveDatasets, OwnNamespacesDatasetNeedsNoSharing) {
    Shared shared;
    shared.dataset.meta.ns = "team";
    shared.job.spec.datasets[0].dataset_ref_namespace = "team";
    EXPECT_TRUE(shared.resolve(std::nullopt).blocker.empty());
    EXPECT_EQ(resolve_datasets(shared.job, {}).blocker.reason, "DatasetNotFound");
}

TEST(ResolveDatasets, DistinguishesDatasetsOfTheSameName) {
    const Shared shared;
    Dataset own = make_dataset();
    own.meta.uid = "uid-own";
    EXPECT_EQ(
        resolve_datasets(shared.job, {own, shared.dataset}, shared.vision).datasets.at(0).uid,
        "uid-imagenet");
}

TEST(ResolveDatasets, ContinuesAnAttemptThatStartedWithTheDataset) {
    Shared shared;
    shared.job.status.datasets = {{"train", "uid-imagenet"}};
    const ResolvedDatasets resolved = shared.resolve(TextMap{});
    EXPECT_EQ(resolved.blocker.reason, kNotShared);
    EXPECT_TRUE(resolved.goes_on);
    EXPECT_TRUE(has_dataset(resolved, "uid-imagenet"));
    shared.dataset.meta.uid = "uid-of-another-one";
    EXPECT_FALSE(shared.resolve(TextMap{}).goes_on);
    EXPECT_TRUE(shared.resolve(TextMap{}).datasets.empty());
}

TEST(ResolveDatasets, ContinuesOnlyIfNothingElseIsMissing) {
    Shared shared;
    shared.job.status.datasets = {{"train", "uid-imagenet"}};
    shared.job.spec.datasets.push_back(shared.job.spec.datasets[0]);
    shared.job.spec.datasets[1].name = "val";
    shared.job.spec.datasets[1].dataset_ref = "other";
    const ResolvedDatasets resolved = shared.resolve(TextMap{});
    EXPECT_FALSE(resolved.goes_on);
    EXPECT_NE(resolved.blocker.message.find("data/imagenet"), std::string::npos) << "the first";
}

struct PoolCase {
    std::string name;
    std::vector<CachePool> pools;
    std::vector<CacheQuota> quotas;
    std::optional<std::string> wanted;
    std::string chosen;
    std::string reason;
    bool waits = false;
};

TEST(ResolvePool, ChoosesByNameByQuotaOrTheOnlyPool) {
    CachePool leaving = make_pool("leaving");
    leaving.meta.deleting_since = wall(1);
    CachePool broken = make_pool("broken");
    broken.spec.host_path = "";
    const CacheQuota for_a = make_quota("q", "a", gib(1));
    const CacheQuota for_b = make_quota("r", "b", gib(1));
    const std::vector<CachePool> two = {make_pool("a"), make_pool("b")};
    const std::vector<PoolCase> cases = {
        {"the named one", two, {for_a}, "b", "b", ""},
        {"a named one that is missing", two, {}, "c", "", "PoolNotFound", true},
        {"a named one that is leaving", {leaving}, {}, "leaving", "", "PoolNotFound", true},
        {"the quota's", two, {for_b}, {}, "b", ""},
        {"the quota's that is missing", {make_pool("b")}, {for_a}, {}, "", "PoolNotFound"},
        {"two quotas for one pool", two, {for_a, make_quota("s", "a", gib(2))}, {}, "a", ""},
        {"quotas for two pools", two, {for_a, for_b}, {}, "", "PoolAmbiguous"},
        {"the only one", {make_pool("a"), leaving}, {}, {}, "a", ""},
        {"none", {}, {}, {}, "", "NoPool"},
        {"two", two, {}, {}, "", "PoolAmbiguous"},
        {"two, one is default", {make_pool("a"), make_pool("default")}, {}, {}, "default", ""},
        {"a broken one", {broken}, {}, {}, "", "PoolInvalid"},
    };
    for (const PoolCase& c : cases) {
        SCOPED_TRACE(c.name);
        TrainingJob job = make_training_job();
        job.spec.cache.pool_ref = c.wanted;
        const ResolvedPool pool = resolve_pool(job, c.pools, c.quotas);
        EXPECT_EQ(pool.name, c.chosen);
        EXPECT_EQ(pool.blocker.reason, c.reason);
        EXPECT_EQ(pool.waits, c.waits);
        EXPECT_EQ(pool.blocker.message.empty(), c.reason.empty());
    }
}

TEST(ResolvePool, TakesPathAndReserveFromThePool) {
    CachePool pool = make_pool();
    pool.spec.reserved_free_percent = 20;
    const ResolvedPool resolved = resolve_pool(make_training_job(), {pool}, {});
    EXPECT_EQ(resolved.reserved_free_percent, 20);
}

TEST(ResolvePool, GivesNoPoolInModeOff) {
    TrainingJob job = make_training_job();
    job.spec.cache.mode = CacheMode::kOff;
    EXPECT_EQ(resolve_pool(job, {make_pool()}, {}).blocker.reason, "Off");
}

TEST(ResolveDatasets, TakesEndpointAndCertificatesOfAnInlineOrigin) {
    TrainingJob job = make_training_job();
    JobDataset& dataset = job.spec.datasets[0];
    dataset.dataset_ref.reset();
    dataset.storage_uri = "s3://bucket/a";
    dataset.endpoint = "https://minio.data.svc";
    dataset.region = "eu";
    dataset.path_style = false;
    dataset.ca_bundle = CaBundle{BundleKind::kSecret, "ca", "tls.crt"};
    const DatasetSource source = resolve_datasets(job, {}).datasets.at(0).source;
    EXPECT_EQ(source.endpoint, "https://minio.data.svc");
    EXPECT_EQ(source.region, "eu");
    EXPECT_EQ(source.path_style, false);
    EXPECT_EQ(source.ca_bundle, dataset.ca_bundle);
}

// A job whose second attempt runs with pool `pool`; empty: without one.
TrainingJob given(const std::string& pool) {
    TrainingJob job = make_training_job();
    job.status.attempt = 2;
    job.status.attempt_pool = AttemptPool{2, pool};
    set_condition(
        job.status.conditions,
        {"Finished", ConditionStatus::kFalse, 1, wall(0), "Running", "It runs."});
    return job;
}

TEST(ResolvePool, AttemptKeepsItsPool) {
    const TrainingJob job = given("a");
    EXPECT_EQ(resolve_pool(job, {make_pool("a"), make_pool("b")}, {}).name, "a");
    EXPECT_EQ(resolve_pool(job, {make_pool("a"), make_pool("default")}, {}).name, "a");
    const CacheQuota for_b = make_quota("q", "b", gib(1));
    EXPECT_EQ(resolve_pool(job, {make_pool("a"), make_pool("b")}, {for_b}).name, "a");
    TrainingJob changed = job;
    changed.spec.cache.pool_ref = "b";
    EXPECT_EQ(resolve_pool(changed, {make_pool("a"), make_pool("b")}, {}).name, "a");
}

TEST(ResolvePool, AttemptKeepsAPoolThatIsInvalidForNewAttempts) {
    CachePool pool = make_pool("a");
    pool.spec.host_path = "/usr/stoker";
    EXPECT_EQ(resolve_pool(given("a"), {pool}, {}).name, "a");
    EXPECT_EQ(resolve_pool(make_training_job(), {pool}, {}).blocker.reason, "PoolInvalid");
}

TEST(ResolvePool, AttemptGetsNoOtherPoolIfItsPoolIsDeleted) {
    const ResolvedPool pool = resolve_pool(given("a"), {make_pool("b")}, {});
    EXPECT_EQ(pool.name, "");
    EXPECT_EQ(pool.blocker.reason, "PoolNotFound");
    EXPECT_FALSE(pool.waits);
}

TEST(ResolvePool, AttemptWithoutAPoolContinuesWithoutOne) {
    const ResolvedPool pool = resolve_pool(given(""), {make_pool("b")}, {});
    EXPECT_EQ(pool.name, "");
    EXPECT_EQ(pool.blocker.reason, "NoPool");
    EXPECT_NE(pool.blocker.message.find("the next one gets CachePool b"), std::string::npos);
}

TEST(ResolvePool, NextAndSuspendedAttemptsChooseAgain) {
    const std::vector<CachePool> pools = {make_pool("a"), make_pool("b")};
    TrainingJob next = given("a");
    next.status.attempt = 3;
    EXPECT_EQ(resolve_pool(next, pools, {}).blocker.reason, "PoolAmbiguous");
    TrainingJob suspended = given("a");
    suspended.spec.suspend = true;
    EXPECT_EQ(resolve_pool(suspended, pools, {}).blocker.reason, "PoolAmbiguous");
    TrainingJob resumed = given("a");
    resumed.status.conditions[0].reason = "Suspended";
    EXPECT_EQ(resolve_pool(resumed, pools, {}).blocker.reason, "PoolAmbiguous");
}

}  // namespace
}  // namespace stoker::control
