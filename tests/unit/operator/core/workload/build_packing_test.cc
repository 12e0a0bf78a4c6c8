#include "operator/core/workload/build_packing.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_packing.h"

namespace stoker::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const Dataset& dataset, const JobSettings& settings = {}) {
    return to_json(build_packing(dataset, settings)).text();
}

DatasetSource claim_source(const std::string& claim) {
    DatasetSource source;
    source.storage_uri = "file:///images";
    source.volume = SourceVolume{claim, std::nullopt};
    return source;
}

TEST(BuildPacking, IsOwnedByTheDataset) {
    const JobManifest job = build_packing(make_packing_dataset(), {});
    EXPECT_EQ(job.meta.ns, "ml");
    ASSERT_EQ(job.meta.owners.size(), 1U);
    EXPECT_EQ(job.meta.owners[0].uid, "d1");
    EXPECT_EQ(job.meta.labels.at("stoker.dev/packing"), "d1");
    EXPECT_EQ(job.pod.labels.at("stoker.dev/packing"), "d1");
    EXPECT_FALSE(job.meta.labels.contains("stoker.dev/filler"));
}

TEST(BuildPacking, HasNoRights) {
    const JobManifest job = build_packing(make_packing_dataset(), {});
    EXPECT_TRUE(job.pod.trainer.restricted);
    EXPECT_FALSE(job.pod.automount_service_account_token);
    EXPECT_EQ(job.pod.service_account_name, "");
    EXPECT_FALSE(job.pod.host_ipc);
    const std::string text = text_of(make_packing_dataset());
    EXPECT_THAT(text, Not(HasSubstr("hostPath")));
    EXPECT_THAT(text, Not(HasSubstr("csi")));
    EXPECT_THAT(text, Not(HasSubstr("serviceAccountToken")));
}

TEST(BuildPacking, RetriesUnlessAnotherRunEndsInTheSameWay) {
    const std::string text = text_of(make_packing_dataset());
    EXPECT_THAT(text, HasSubstr(R"("backoffLimit":6)"));
    EXPECT_THAT(text, HasSubstr(R"("activeDeadlineSeconds":604800)"));
    EXPECT_THAT(text, HasSubstr(R"("podReplacementPolicy":"Failed")"));
    EXPECT_THAT(text, HasSubstr(R"("restartPolicy":"Never")"));
    EXPECT_THAT(text, HasSubstr(R"("completionMode":"NonIndexed")"));
    EXPECT_THAT(text, HasSubstr(R"("containerName":"stoker-pack")"));
    EXPECT_THAT(text, HasSubstr(R"("values":[2,3])"));
}

TEST(BuildPacking, GivesEachEndItsOwnServerAndSecret) {
    const JobManifest job = build_packing(make_packing_dataset(), {});
    EXPECT_THAT(
        job.pod.trainer.args,
        ElementsAre(
            "pack",
            "s3://raw/digits",
            "s3://packed/digits",
            "--order=random",
            "--seed=0",
            "--chunk-bytes=4194304",
            "--threads=4",
            "--result-file=/dev/termination-log",
            "--endpoint=http://minio:9000",
            "--region=us-east-1",
            "--credentials=/stoker/to/credentials",
            "--ca-file=",
            "--from-endpoint=",
            "--from-region=us-east-1",
            "--from-credentials=/stoker/from/credentials",
            "--from-ca-file="));
    const std::string text = to_json(job).text();
    EXPECT_THAT(text, HasSubstr(R"("secretName":"raw-keys")"));
    EXPECT_THAT(text, HasSubstr(R"("secretName":"packed-keys")"));
}

TEST(BuildPacking, WritesOnlyTheDestinationsClaim) {
    Dataset dataset = make_packing_dataset();
    dataset.spec.packing->from = claim_source("raw");
    dataset.spec.sources[0] = claim_source("packed");
    const JobManifest job = build_packing(dataset, {});
    ASSERT_EQ(job.pod.volumes.size(), 2U);
    EXPECT_EQ(std::get<ClaimVolume>(job.pod.volumes[0].source), (ClaimVolume{"raw", true}));
    EXPECT_EQ(std::get<ClaimVolume>(job.pod.volumes[1].source), (ClaimVolume{"packed", false}));
    EXPECT_TRUE(job.pod.trainer.mounts[0].read_only);
    EXPECT_FALSE(job.pod.trainer.mounts[1].read_only);
    EXPECT_EQ(job.pod.trainer.args[1], "file:///stoker/from/volume/images");
    EXPECT_EQ(job.pod.trainer.args[2], "file:///stoker/to/volume/images");
}

TEST(BuildPacking, NamesAClaimThatHasBothEndsOnce) {
    Dataset dataset = make_packing_dataset();
    dataset.spec.packing->from = claim_source("images");
    dataset.spec.sources[0] = claim_source("images");
    dataset.spec.sources[0].storage_uri = "file:///packed";
    const PodManifest pod = build_packing(dataset, {}).pod;
    ASSERT_EQ(pod.volumes.size(), 1U);
    EXPECT_EQ(std::get<ClaimVolume>(pod.volumes[0].source), (ClaimVolume{"images", false}));
    ASSERT_EQ(pod.trainer.mounts.size(), 2U);
    for (const auto& mount : pod.trainer.mounts) {
        EXPECT_EQ(mount.volume, pod.volumes[0].name);
        EXPECT_EQ(mount.read_only, mount.path == "/stoker/from/volume");
    }
    EXPECT_EQ(pod.trainer.args[1], "file:///stoker/from/volume/images");
    EXPECT_EQ(pod.trainer.args[2], "file:///stoker/to/volume/packed");
}

TEST(BuildPacking, EscapesWhatTheKubeletExpands) {
    Dataset dataset = make_packing_dataset();
    dataset.spec.packing->from.storage_uri = "s3://raw/$(AWS_SECRET_ACCESS_KEY)";
    EXPECT_THAT(
        build_packing(dataset, {}).pod.trainer.args,
        Contains("s3://raw/$$(AWS_SECRET_ACCESS_KEY)"));
}

TEST(BuildPacking, HoldsFewLargeChunksInMemory) {
    Dataset dataset = make_packing_dataset();
    dataset.spec.packing->chunk_bytes = mib(128);
    EXPECT_THAT(build_packing(dataset, {}).pod.trainer.args, Contains("--threads=2"));
    dataset.spec.packing->chunk_bytes = mib(512);
    EXPECT_THAT(build_packing(dataset, {}).pod.trainer.args, Contains("--threads=1"));
}

TEST(BuildPacking, TakesImageResourcesAndProxyFromTheSettings) {
    JobSettings settings;
    settings.sidecar_image = "sidecar:1";
    settings.packing_resources = {{{"memory", "2Gi"}}, {}};
    settings.sidecar_proxy = {{"HTTPS_PROXY", "http://proxy:3128"}};
    const ContainerManifest container = build_packing(make_packing_dataset(), settings).pod.trainer;
    EXPECT_EQ(container.image, "sidecar:1");
    EXPECT_EQ(container.resources, settings.packing_resources);
    ASSERT_EQ(container.env.size(), 1U);
    EXPECT_EQ(container.env[0].value, "http://proxy:3128");
}

TEST(PackingJobName, ChangesWithTheSpecAndNotWithTheSettings) {
    const Dataset dataset = make_packing_dataset();
    JobSettings settings;
    settings.sidecar_image = "sidecar:2";
    EXPECT_EQ(build_packing(dataset, settings).meta.name, packing_job_name(dataset));
    Dataset other = dataset;
    other.spec.packing->from.secret_ref = "other-keys";
    EXPECT_NE(packing_job_name(dataset), packing_job_name(other)) << "a failed Job is retried";
    other = dataset;
    other.meta.uid = "d2";
    EXPECT_NE(packing_job_name(dataset), packing_job_name(other));
}

TEST(PackingJobName, FitsIntoALabel) {
    Dataset dataset = make_packing_dataset();
    dataset.meta.name = std::string(253, 'n');
    EXPECT_LE(packing_job_name(dataset).size(), 63U);
}

}  // namespace
}  // namespace stoker::control
