#include "operator/core/workload/build_filler.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job.h"
#include "operator/api/pod.h"
#include "operator/core/workload/build_pod.h"
#include "tests/unit/operator/core/make_filler.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobManifest filler_of(const Dataset& dataset, const JobSettings& settings = {}) {
    ResolvedPool pool;
    pool.name = "nvme";
    return build_filler({dataset, pool, settings, "n1"});
}

template <class Source>
std::vector<Source> volumes_of(const JobManifest& job) {
    std::vector<Source> result;
    for (const VolumeManifest& volume : job.pod.volumes) {
        if (const auto* source = std::get_if<Source>(&volume.source)) {
            result.push_back(*source);
        }
    }
    return result;
}

std::string env(const ContainerManifest& container, const std::string& name) {
    const auto found = std::ranges::find(container.env, name, &EnvVar::name);
    return found == container.env.end() ? "" : found->value;
}

TEST(BuildFiller, IsOwnedByTheDataset) {
    const JobManifest job = filler_of(make_shared_dataset());
    EXPECT_EQ(job.meta.ns, "data");
    ASSERT_EQ(job.meta.owners.size(), 1U);
    EXPECT_EQ(job.meta.owners[0].kind, "Dataset");
    EXPECT_EQ(job.meta.owners[0].uid, "uid-imagenet");
    EXPECT_FALSE(job.meta.owners[0].blocks_deletion) << "needs no right to finalizers";
    EXPECT_EQ(job.meta.labels.at("stoker.dev/filler"), "uid-imagenet");
    EXPECT_EQ(job.pod.labels.at("stoker.dev/filler"), "uid-imagenet");
    EXPECT_EQ(place_of(job.meta), (FillerPlace{"nvme", "n1"}));
}

TEST(BuildFiller, KnowsThatSamplesAreInChunks) {
    Dataset dataset = make_shared_dataset();
    EXPECT_THAT(to_json(filler_of(dataset)).text(), Not(HasSubstr("chunks")));
    dataset.spec.format = DatasetFormat::kChunks;
    EXPECT_THAT(to_json(filler_of(dataset)).text(), HasSubstr("chunks"));
}

TEST(BuildFiller, ListsTheOriginAgainInEachJob) {
    EXPECT_THAT(
        to_json(filler_of(make_shared_dataset())).text(),
        HasSubstr("batch.kubernetes.io/controller-uid"));
}

TEST(BuildFiller, StopsItselfWhenIdle) {
    EXPECT_THAT(
        env(filler_of(make_shared_dataset()).pod.trainer, "STOKER_SIDECAR_CONFIG"),
        HasSubstr(R"("endWhenIdle":"600s")"));
}

TEST(BuildFiller, GetsTheOperatorsProxy) {
    JobSettings settings;
    settings.sidecar_proxy = {{"HTTPS_PROXY", "http://proxy:3128"}, {"NO_PROXY", ".svc"}};
    const JobManifest job = filler_of(make_shared_dataset(), settings);
    EXPECT_EQ(env(job.pod.trainer, "HTTPS_PROXY"), "http://proxy:3128");
    EXPECT_EQ(env(job.pod.trainer, "NO_PROXY"), ".svc");
    EXPECT_EQ(env(job.pod.trainer, "HTTP_PROXY"), "");
}

// Kubernetes adds the pull secrets of ServiceAccount "default" to a pod that names none.
TEST(BuildFiller, LeavesPullSecretsToTheServiceAccountOfItsNamespace) {
    const std::string json = to_json(filler_of(make_shared_dataset())).text();
    EXPECT_THAT(json, Not(HasSubstr("imagePullSecrets")));
    EXPECT_THAT(json, Not(HasSubstr("serviceAccountName")));
}

TEST(BuildFiller, RunsOnItsNodeOnlyForOneLease) {
    const std::string json = to_json(filler_of(make_shared_dataset())).text();
    EXPECT_THAT(
        json,
        HasSubstr(
            R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]})"));
    EXPECT_THAT(json, HasSubstr(R"("tolerations":[{"operator":"Exists"}])"));
    EXPECT_THAT(json, HasSubstr(R"("restartPolicy":"OnFailure")"));
    EXPECT_THAT(json, HasSubstr(R"("backoffLimit":2147483647)"));
    EXPECT_THAT(json, HasSubstr(R"("completionMode":"NonIndexed")"));
    EXPECT_THAT(json, HasSubstr(R"("automountServiceAccountToken":false)"));
    EXPECT_THAT(json, Not(HasSubstr("podFailurePolicy"))) << "only with restartPolicy Never";
    const Result<Job> read = parse_document<Job>(json);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->active_deadline_seconds, kFillerLeaseSeconds);
}

TEST(BuildFiller, ContainsOnlyASidecarThatMayWriteTheNodeDirectory) {
    const JobManifest job = filler_of(make_shared_dataset());
    EXPECT_TRUE(job.pod.init_containers.empty());
    EXPECT_EQ(job.pod.trainer.name, kSidecarContainer);
    EXPECT_TRUE(job.pod.trainer.restricted);
    EXPECT_FALSE(job.pod.trainer.always_running);
    const std::vector<CsiVolume> views = volumes_of<CsiVolume>(job);
    ASSERT_EQ(views.size(), 1U);
    EXPECT_EQ(views[0].attributes.at("view"), "owner");
    EXPECT_EQ(views[0].attributes.at("namespace"), "data");
    EXPECT_FALSE(views[0].read_only);
}

TEST(BuildFiller, MountsEveryVolumeAndHasEveryMountsVolume) {
    Dataset dataset = make_shared_dataset();
    dataset.spec.sources[0].secret_ref = "keys";
    dataset.spec.sources[0].ca_bundle = CaBundle{BundleKind::kConfigMap, "roots", "ca.crt"};
    const JobManifest job = filler_of(dataset);
    std::set<std::string> volumes;
    std::set<std::string> mounts;
    for (const VolumeManifest& volume : job.pod.volumes) {
        volumes.insert(volume.name);
    }
    for (const MountManifest& mount : job.pod.trainer.mounts) {
        mounts.insert(mount.volume);
    }
    EXPECT_EQ(volumes, mounts);
    EXPECT_EQ(volumes_of<SecretVolume>(job), (std::vector<SecretVolume>{{"keys", false}}));
    ASSERT_EQ(volumes_of<BundleVolume>(job).size(), 1U);
    EXPECT_FALSE(volumes_of<BundleVolume>(job)[0].optional);
}

TEST(BuildFiller, MountsADirectoryOrigin) {
    Dataset dataset = make_shared_dataset();
    dataset.spec.sources[0] = {"file:///d", "", "", {}, {}, SourceVolume{{}, "/mnt/nfs"}};
    EXPECT_EQ(volumes_of<HostPathVolume>(filler_of(dataset)).size(), 1U);
}

TEST(BuildFiller, IdentifiesItselfToTheOperator) {
    const std::string config =
        env(filler_of(make_shared_dataset()).pod.trainer, "STOKER_SIDECAR_CONFIG");
    EXPECT_THAT(config, HasSubstr(R"("filler/imagenet/nvme")"));
    EXPECT_THAT(config, HasSubstr(R"("uid-imagenet")"));
    EXPECT_THAT(config, Not(HasSubstr(R"("guest":true)")));
    EXPECT_TRUE(is_filler("filler/imagenet/nvme"));
    EXPECT_TRUE(is_filler_of("filler/imagenet/nvme", "imagenet"));
    EXPECT_FALSE(is_filler_of("filler/imagenet-2/nvme", "imagenet"));
    EXPECT_FALSE(is_filler("imagenet"));
}

TEST(BuildFiller, ReportsANameThatIsShortAndUnique) {
    std::set<std::string> names;
    for (const std::size_t size : {122U, 123U, 253U}) {
        for (const char last : {'a', 'b'}) {
            Dataset dataset = make_shared_dataset();
            dataset.meta.name = std::string(size - 1, 'd') + last;
            EXPECT_LE(resolve_for_filler(dataset).name.size(), 63U);
            EXPECT_TRUE(names.insert(resolve_for_filler(dataset).name).second) << "as a folder";
            for (const std::string& pool : {std::string("p"), std::string(253, 'p')}) {
                const std::string name = filler_training_job(dataset, pool);
                EXPECT_LE(name.size(), 253U);
                EXPECT_TRUE(names.insert(name).second) << name;
                EXPECT_TRUE(is_filler_of(name, dataset.meta.name));
                EXPECT_FALSE(is_filler_of(name, std::string(size - 1, 'd') + 'c'));
            }
        }
    }
}

TEST(BuildFiller, AShortenedNameHasAHash) {
    Dataset dataset = make_shared_dataset();
    for (const std::string& tail : {std::string(100, 'd'), std::string(30, '-') + 'd'}) {
        dataset.meta.name = std::string(100, 'd') + tail;
        const std::string name = filler_training_job(dataset, "p");
        EXPECT_TRUE(may_be_shortened(name.substr(7, name.size() - 9))) << name;
    }
    for (const char* name :
         {"a", "0123456789ab", "a-0123456789a", "a-0123456789abc", "a.0123456789ab"}) {
        EXPECT_FALSE(may_be_shortened(name)) << name;
    }
}

TEST(BuildFiller, NamesAreShortAndUnique) {
    Dataset dataset = make_shared_dataset();
    std::set<std::string> names;
    for (const std::string& name : {std::string(253, 'x'), std::string(38, 'y') + ".z"}) {
        dataset.meta.name = name;
        for (const char* uid : {"u1", "u2"}) {
            dataset.meta.uid = uid;
            for (const FillerPlace& place :
                 {FillerPlace{"p", "n1"}, FillerPlace{"p", "n2"}, FillerPlace{"q", "n1"}}) {
                const std::string filler = filler_name(dataset, place);
                EXPECT_LE(filler.size(), 63U);
                EXPECT_EQ(filler.find(".-"), std::string::npos) << filler;
                EXPECT_TRUE(names.insert(filler).second) << filler;
            }
        }
    }
}

TEST(BuildFiller, DigestIsTheSameForAllNodesOfThePool) {
    const Dataset dataset = make_shared_dataset();
    ResolvedPool pool;
    pool.name = "nvme";
    const JobSettings settings;
    const std::string digest = filler_digest({dataset, pool, settings, "n1"});
    EXPECT_EQ(filler_digest({dataset, pool, settings, "n2"}), digest);
    pool.name = "ssd";
    EXPECT_NE(filler_digest({dataset, pool, settings, "n1"}), digest);
}

TEST(BuildFiller, DigestChangesWithTheSpecButNotWithTheCa) {
    const Dataset dataset = make_shared_dataset();
    const auto digest = [](const JobManifest& job) {
        return job.meta.annotations.at(std::string{kDigestAnnotation});
    };
    JobSettings settings;
    const std::string before = digest(filler_of(dataset, settings));
    settings.control_ca_pem = "PEM";
    EXPECT_EQ(digest(filler_of(dataset, settings)), before);
    settings.sidecar_image = "sidecar:2";
    EXPECT_NE(digest(filler_of(dataset, settings)), before);
    Dataset listed = dataset;
    listed.status.total_bytes = 1000;
    listed.status.samples = 10;
    listed.spec.consistency = Consistency::kEtag;
    EXPECT_EQ(digest(filler_of(listed)), before) << "a new filler lists in every mode";
    Dataset moved = dataset;
    moved.spec.sources[0].secret_ref = "new-keys";
    EXPECT_NE(digest(filler_of(moved)), before);
}

TEST(BuildFiller, WaitingReasonOfItsContainerIsReadAsTheSidecars) {
    const Result<Pod> pod = parse_document<Pod>(
        R"({"metadata":{"name":"p"},"status":{"containerStatuses":[{"name":"stoker-sidecar",)"
        R"("state":{"waiting":{"reason":"ImagePullBackOff"}}}]}})");
    ASSERT_TRUE(pod);
    EXPECT_EQ(pod->sidecar.waiting_reason, "ImagePullBackOff");
}

}  // namespace
}  // namespace stoker::control
