#include "operator/core/spec/packing.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/spec/resolve.h"
#include "operator/core/spec/validate.h"
#include "tests/unit/operator/core/make_packing.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

using Change = std::function<void(DatasetSpec&)>;

std::string digest_after(const Change& change) {
    DatasetSpec spec = make_packing_dataset().spec;
    change(spec);
    return packing_digest(spec);
}

std::string errors_after(const Change& change) {
    Dataset dataset = make_packing_dataset();
    change(dataset.spec);
    return to_string(validate(dataset));
}

TrainingJob make_reader() {
    TrainingJob job;
    job.meta.ns = "ml";
    job.meta.name = "mnist";
    JobDataset entry;
    entry.name = "train";
    entry.dataset_ref = "digits";
    job.spec.datasets = {entry};
    return job;
}

TEST(PackingDigest, ChangesWithWhatDecidesTheChunks) {
    const std::string before = digest_after([](DatasetSpec&) {});
    EXPECT_NE(before, digest_after([](auto& spec) { spec.packing->from.storage_uri += "2"; }));
    EXPECT_NE(before, digest_after([](auto& spec) { spec.packing->from.endpoint = "http://b"; }));
    EXPECT_NE(before, digest_after([](auto& spec) { spec.packing->chunk_bytes = mib(8); }));
    EXPECT_NE(before, digest_after([](auto& spec) { spec.packing->seed = 1; }));
    EXPECT_NE(
        before, digest_after([](auto& spec) { spec.packing->order = PackingOrder::kSorted; }));
}

TEST(PackingDigest, IgnoresHowTheEndsAreReached) {
    const std::string before = digest_after([](DatasetSpec&) {});
    EXPECT_EQ(before, digest_after([](auto& spec) { spec.packing->from.secret_ref = "other"; }));
    EXPECT_EQ(before, digest_after([](auto& spec) { spec.sources[0].endpoint = "http://b"; }));
    EXPECT_EQ(before, digest_after([](auto& spec) { spec.packing->active_deadline_seconds = 60; }));
}

TEST(PackingDigest, IgnoresTheSeedOfSortedChunks) {
    const auto sorted = [](std::int64_t seed) {
        return digest_after([=](auto& spec) {
            spec.packing->order = PackingOrder::kSorted;
            spec.packing->seed = seed;
        });
    };
    EXPECT_EQ(sorted(1), sorted(2));
}

TEST(Packing, IsCompleteByTheStatusOnly) {
    EXPECT_FALSE(is_packed(make_packing_dataset()));
    EXPECT_TRUE(is_packed(make_packed_dataset()));
    Dataset changed = make_packed_dataset();
    changed.spec.packing->chunk_bytes = mib(8);
    EXPECT_FALSE(is_packed(changed));
    changed.spec.packing.reset();
    EXPECT_TRUE(is_packed(changed)) << "somebody else makes its chunks";
}

TEST(Packing, BlocksNewAttemptsUntilItIsComplete) {
    const Blocker waiting = resolve_datasets(make_reader(), {make_packing_dataset()}).blocker;
    EXPECT_EQ(waiting.reason, "DatasetNotPacked");
    EXPECT_THAT(waiting.message, HasSubstr("ml/digits is not packed"));
    EXPECT_TRUE(resolve_datasets(make_reader(), {make_packed_dataset()}).blocker.empty());
}

TEST(Packing, LetsARunningAttemptGoOn) {
    EXPECT_TRUE(resolve_datasets(make_reader(), {make_packing_dataset()}).goes_on);
}

TEST(Packing, QuotesTheConditionToItsOwnNamespaceOnly) {
    Dataset dataset = make_packing_dataset();
    dataset.status.conditions = {
        {kPacked, ConditionStatus::kFalse, 1, {}, "Failed", "s3://packed is full."}};
    EXPECT_THAT(tell_packing(dataset), HasSubstr("s3://packed is full."));
    EXPECT_EQ(tell_packing(dataset, true), "Dataset ml/digits is not packed yet.");
}

TEST(Packing, IsValidated) {
    EXPECT_EQ(errors_after([](DatasetSpec&) {}), "");
    EXPECT_THAT(
        errors_after([](auto& spec) { spec.format = DatasetFormat::kObjects; }),
        HasSubstr("packing belongs to format Chunks"));
    EXPECT_THAT(
        errors_after([](auto& spec) { spec.packing->from.storage_uri = "gs://raw"; }),
        HasSubstr("spec.packing.from.storageUri: storageUri must be s3://bucket/prefix"));
    EXPECT_THAT(
        errors_after([](auto& spec) { spec.packing->chunk_bytes = mib(513); }),
        HasSubstr("chunkBytes must be between 4Ki and 512Mi"));
}

TEST(Packing, NeitherReadsNorWritesWebServers) {
    const std::string uri = "https://data.example.com/a";
    const char* words = "packing reads and writes s3:// and PersistentVolumeClaims";
    EXPECT_THAT(
        errors_after([&](DatasetSpec& spec) { spec.sources[0].storage_uri = uri; }),
        HasSubstr(words));
    EXPECT_THAT(
        errors_after([&](DatasetSpec& spec) { spec.packing->from.storage_uri = uri; }),
        HasSubstr(words));
}

TEST(Packing, UsesNoDirectoryOfTheNode) {
    const SourceVolume of_node{std::nullopt, "/etc"};
    const SourceVolume claim{"raw", std::nullopt};
    const auto from = [](const SourceVolume& volume) {
        return [volume](DatasetSpec& spec) {
            spec.packing->from = DatasetSource{};
            spec.packing->from.storage_uri = "file:///raw";
            spec.packing->from.volume = volume;
        };
    };
    EXPECT_THAT(errors_after(from(of_node)), HasSubstr("must have no hostPath"));
    EXPECT_EQ(errors_after(from(claim)), "");
    EXPECT_THAT(
        errors_after([&](DatasetSpec& spec) {
            spec.sources[0] = DatasetSource{};
            spec.sources[0].storage_uri = "file:///packed";
            spec.sources[0].volume = of_node;
        }),
        HasSubstr("must have no hostPath"));
}

TEST(Packing, RefusesChunksInsideTheSource) {
    const auto from = [](const std::string& uri, const std::string& endpoint) {
        return errors_after([&](DatasetSpec& spec) {
            spec.packing->from.storage_uri = uri;
            spec.packing->from.endpoint = endpoint;
        });
    };
    EXPECT_THAT(from("s3://packed", "http://minio:9000"), HasSubstr("must not lie inside"));
    EXPECT_THAT(from("s3://packed/digits", "http://minio:9000"), HasSubstr("must not lie inside"));
    EXPECT_THAT(from("s3://packed", "http://minio:9000/"), HasSubstr("must not lie inside"));
    EXPECT_EQ(from("s3://packed/dig", "http://minio:9000"), "");
    EXPECT_EQ(from("s3://packed", ""), "") << "another server";
}

}  // namespace
}  // namespace stoker::control
