#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operator/core/workload/foreign_job.h"
#include "tests/unit/operator/core/workload/injected_pod.h"

namespace stoker::control {
namespace {

using web::json::value;

// Where the container mounts the volume; "": nowhere.
std::string mounted(const value& of, const std::string& volume) {
    for (const value& mount : of.at("volumeMounts").as_array()) {
        if (mount.at("name").as_string() == volume) {
            return mount.at("mountPath").as_string();
        }
    }
    return "";
}

TEST(ForeignPatch, ShowsFilesToTheReaderAndTheirSocketToTheServerOnly) {
    const Injected injected{pod_with(kFiles)};
    ASSERT_TRUE(injected.spec) << injected.spec.error().message;
    const Json pod = injected.patched();
    EXPECT_EQ(
        names(pod, "initContainers"), (std::vector<std::string>{"stoker-sidecar", "stoker-files"}));
    const value main = container(pod, "containers", "main");
    EXPECT_EQ(mounted(main, "stoker-files-0"), "/data/train");
    EXPECT_EQ(mounted(main, "stoker-files-server-0"), "");
    EXPECT_EQ(env(main, "AWS_ENDPOINT_URL"), "(absent)");
    EXPECT_EQ(
        mounted(container(pod, "initContainers", "stoker-files"), "stoker-files-server-0"),
        "/stoker/files/imagenet");
    EXPECT_EQ(
        mounted(container(pod, "initContainers", "stoker-sidecar"), "stoker-files-server-0"), "");
}

TEST(ForeignPatch, SecondPatchOfFilesIsEmpty) {
    const Injected injected{pod_with(kFiles)};
    const Json once = injected.patched();
    EXPECT_EQ(injected.patch_of(once).text(), "[]");
    const Injected again{once};
    ASSERT_TRUE(again.spec) << again.spec.error().message;
    EXPECT_EQ(again.spec->text(), injected.spec->text());
    EXPECT_EQ(again.patch_of(once).text(), "[]");
}

TEST(ForeignPatch, GivesTheProgramsOwnKeysToTheFileServer) {
    const Injected injected{pod_with(R"([
        {"op":"add","path":"/metadata/annotations/stoker.dev~1mount-path","value":"/data/train"},
        {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_ACCESS_KEY_ID","value":"mine"}},
        {"op":"add","path":"/spec/containers/0/env/-","value":{"name":"AWS_SECRET_ACCESS_KEY","value":"s"}}])")};
    const value files = container(injected.patched(), "initContainers", "stoker-files");
    EXPECT_EQ(env(files, "AWS_ACCESS_KEY_ID"), "mine");
    EXPECT_EQ(env(files, "STOKER_S3_ACCESS_KEY"), "(absent)");
}

TEST(ForeignSpec, TakesFilesFromAnnotations) {
    const Injected label{pod_with(kFiles)};
    EXPECT_EQ(label.job.spec.datasets.at(0).access, DatasetAccess::kFiles);
    EXPECT_EQ(label.job.spec.datasets.at(0).mount_path, "/data/train");
    const Injected listed{pod_with(
        R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1datasets","value":
         "[{\"name\":\"val\",\"datasetRef\":{\"name\":\"val\"},\"mountPath\":\"/data/val\"}]"}])")};
    ASSERT_TRUE(listed.spec) << listed.spec.error().message;
    EXPECT_EQ(listed.job.spec.datasets.at(0).access, DatasetAccess::kS3);
    EXPECT_EQ(listed.job.spec.datasets.at(1).access, DatasetAccess::kFiles);
    const Injected same{pod_with(R"([
        {"op":"add","path":"/metadata/annotations/stoker.dev~1mount-path","value":"/data/train"},
        {"op":"add","path":"/metadata/annotations/stoker.dev~1datasets","value":
         "[{\"name\":\"imagenet\",\"datasetRef\":{\"name\":\"imagenet\"}}]"}])")};
    ASSERT_TRUE(same.spec) << same.spec.error().message;
    EXPECT_EQ(same.job.spec.datasets.at(0).mount_path, "/data/train");
}

struct BadFiles {
    const char* annotations;
    const char* mount_path;  // of a volume of the pod's own
    const char* message;
};

TEST(ForeignSpec, RefusesFilesByTheRulesOfATrainingJob) {
    for (const BadFiles& bad : std::vector<BadFiles>{
             {R"({"stoker.dev/access":"Files"})", "/x", "access Files needs mountPath"},
             {R"({"stoker.dev/access":"S3","stoker.dev/mount-path":"/data"})", "/x", "belongs to"},
             {R"({"stoker.dev/mount-path":"data"})", "/x", "absolute path"},
             {R"({"stoker.dev/mount-path":"/proc/1"})", "/x", "are taken"},
             {R"({"stoker.dev/mount-path":"/stoker"})", "/x", "are taken"},
             {R"({"stoker.dev/mount-path":"/etc"})", "/x", "are taken"},
             {R"({"stoker.dev/mount-path":"/data/train"})", "/data", "contain each other"},
             {R"({"stoker.dev/mount-path":"/data"})", "/data/train/", "contain each other"},
             {R"({"stoker.dev/mount-path":"/data/train"})",
              "/x/../data/train",
              "contain each other"},
             {R"({"stoker.dev/mount-path":"/var"})", "/x", "contain each other"},
             {R"({"stoker.dev/mount-path":"/data"})", "/stoker/run", "/stoker is where"},
             {R"({"stoker.dev/mount-path":"/data","stoker.dev/cache":"{\"mode\":\"Off\"}"})",
              "/x",
              "another cache.mode"}}) {
        const Injected injected{pod_with(fmt::format(
            R"([{{"op":"replace","path":"/metadata/annotations","value":{}}},
               {{"op":"add","path":"/spec/containers/0/volumeMounts/-",
                 "value":{{"name":"mine","mountPath":"{}"}}}}])",
            bad.annotations,
            bad.mount_path))};
        ASSERT_FALSE(injected.spec) << bad.annotations;
        EXPECT_EQ(injected.spec.error().code, ErrorCode::kInvalidArgument);
        EXPECT_NE(injected.spec.error().message.find(bad.message), std::string::npos)
            << injected.spec.error().message;
    }
}

// As injector.h calls it; `found` is the only Dataset besides those that need no look.
Result<TrainingJob> accesses_of(
    const Injected& asked, const TrainingJob& stored, const Dataset& found = make_dataset()) {
    return with_accesses(asked.pod, stored, asked.job, [&](const ObjectKey& key) {
        return key == found.meta.key() ? &found : nullptr;
    });
}

TEST(WithAccesses, FollowsThePodTemplate) {
    const Injected before{pod_with()};
    const Injected after{pod_with(kFiles)};
    const Result<TrainingJob> job = accesses_of(after, before.job);
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.datasets.at(0).access, DatasetAccess::kFiles);
    EXPECT_EQ(job->spec.datasets.at(0).mount_path, "/data/train");
    const Result<TrainingJob> back = accesses_of(before, after.job);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->spec.datasets.at(0).mount_path, std::nullopt);
}

TEST(WithAccesses, RefusesFilesOfADatasetThatTheJobLacks) {
    const Injected asked{pod_with(kFiles)};
    TrainingJob stored = asked.job;
    stored.spec.datasets.at(0).dataset_ref = "other";
    const Result<TrainingJob> job = accesses_of(asked, stored);
    ASSERT_FALSE(job);
    EXPECT_NE(job.error().message.find("imagenet"), std::string::npos) << job.error().message;
}

constexpr const char* kValidation =
    R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1datasets","value":
     "[{\"name\":\"val\",\"datasetRef\":{\"name\":\"val\"},\"mountPath\":\"/data/train\"}]"}])";

TEST(WithAccesses, ShowsNoFilesThatTheTemplateNoLongerNames) {
    const Injected before{pod_with(kValidation)};
    const Injected after{with_volume(pod_with(), "claim")};
    const Result<TrainingJob> job = accesses_of(after, before.job);
    ASSERT_TRUE(job) << job.error().message;
    ASSERT_EQ(job->spec.datasets.size(), 2U);
    EXPECT_EQ(job->spec.datasets[0].access, DatasetAccess::kS3);
    EXPECT_EQ(job->spec.datasets[1].access, DatasetAccess::kSdk);
    EXPECT_EQ(job->spec.datasets[1].mount_path, std::nullopt);
}

TEST(WithAccesses, ShowsNoFilesOfTheFormerLabel) {
    const Injected before{pod_with(kFiles)};
    const Injected after{pod_with(
        R"([{"op":"replace","path":"/metadata/labels/stoker.dev~1dataset","value":"imagenet2"}])")};
    const Result<TrainingJob> job = accesses_of(after, before.job);
    ASSERT_TRUE(job) << job.error().message;
    ASSERT_EQ(job->spec.datasets.size(), 1U);
    EXPECT_EQ(job->spec.datasets[0].name, "imagenet");
    EXPECT_EQ(job->spec.datasets[0].access, DatasetAccess::kSdk);
    EXPECT_EQ(job->spec.datasets[0].mount_path, std::nullopt);
}

TEST(WithAccesses, LeavesBlocksAnAccessThatTheyHave) {
    Dataset blocks = make_dataset();
    blocks.meta.name = "val";
    blocks.spec.format = DatasetFormat::kBlocks;
    const Result<TrainingJob> job =
        accesses_of(Injected{pod_with()}, Injected{pod_with(kValidation)}.job, blocks);
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.datasets.at(1).access, DatasetAccess::kS3);
}

TEST(DescribeLack, NamesTheFolder) {
    EXPECT_EQ(describe_lack(read_pod(pod_with())), "a cache");
    EXPECT_EQ(
        describe_lack(read_pod(pod_with(kFiles))), "a cache, and without files in /data/train");
    const Json both = test::patched(
        pod_with(kFiles),
        Json::parse(
            R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1datasets","value":
         "[{\"name\":\"val\",\"mountPath\":\"/val\"},{\"name\":\"more\"}]"}])")
            .value());
    EXPECT_EQ(describe_lack(read_pod(both)), "a cache, and without files in /data/train, /val");
    const Json unreadable = test::patched(
        pod_with(kFiles),
        Json::parse(
            R"([{"op":"add","path":"/metadata/annotations/stoker.dev~1datasets","value":"["}])")
            .value());
    EXPECT_EQ(describe_lack(read_pod(unreadable)), "a cache, and without files in /data/train");
}

}  // namespace
}  // namespace stoker::control
