#include "operator/core/workload/build_pod.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

PodManifest pod_of(const TrainingJobView& view) {
    return build_pod({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
}

std::optional<EnvVar> find_env(const ContainerManifest& container, const std::string& name) {
    for (const EnvVar& variable : container.env) {
        if (variable.name == name) {
            return variable;
        }
    }
    return std::nullopt;
}

std::string env(const ContainerManifest& container, const std::string& name) {
    const std::optional<EnvVar> found = find_env(container, name);
    if (!found) {
        return "(absent)";
    }
    return found->value_from == Json() ? found->value : found->value + found->value_from.text();
}

const MountManifest* find_mount(const ContainerManifest& container, const std::string& path) {
    const auto found = std::find_if(
        container.mounts.begin(), container.mounts.end(), [&](const MountManifest& mount) {
            return mount.path == path;
        });
    return found == container.mounts.end() ? nullptr : &*found;
}

std::set<std::string> volume_names(const PodManifest& pod) {
    std::set<std::string> names;
    for (const VolumeManifest& volume : pod.volumes) {
        EXPECT_TRUE(names.insert(volume.name).second) << volume.name << " is a duplicate";
        EXPECT_LE(volume.name.size(), 63U);
    }
    return names;
}

TEST(BuildPod, PutsTheSidecarFirstAndRestrictsIt) {
    TrainingJob job = make_training_job();
    job.spec.pod_template.init_containers = {Json::parse(R"({"name":"prepare"})").value()};
    const PodManifest pod = pod_of(make_view(job));
    ASSERT_EQ(pod.init_containers.size(), 1U);
    const ContainerManifest& sidecar = pod.init_containers[0];
    EXPECT_EQ(sidecar.name, "stoker-sidecar");
    EXPECT_EQ(sidecar.image, "sidecar:1");
    EXPECT_TRUE(sidecar.restricted);
    EXPECT_TRUE(sidecar.always_running);
    ASSERT_TRUE(sidecar.startup_probe);
    EXPECT_EQ(sidecar.startup_probe->port, sidecar.http_port);
    EXPECT_EQ(pod.user_init_containers.size(), 1U);
    EXPECT_EQ(pod.trainer.name, "trainer");
    EXPECT_FALSE(pod.automount_service_account_token);
    EXPECT_EQ(pod.subdomain, "resnet-ranks");
}

// Attributes of the volume for the node directory that a container mounts at `path`.
CsiVolume view_at(
    const PodManifest& pod, const ContainerManifest& container, const std::string& path) {
    const MountManifest* mount = find_mount(container, path);
    for (const VolumeManifest& volume : pod.volumes) {
        const auto* view = std::get_if<CsiVolume>(&volume.source);
        if (mount != nullptr && view != nullptr && volume.name == mount->volume) {
            EXPECT_EQ(mount->read_only, view->read_only);
            return *view;
        }
    }
    ADD_FAILURE() << "no view at " << path;
    return {};
}

TEST(BuildPod, ShowsTheWholeNodeDirectoryToTheSidecarOnly) {
    const PodManifest pod = pod_of(make_view());
    const CsiVolume owner = view_at(pod, pod.init_containers.at(0), "/stoker/node/train");
    const CsiVolume data = view_at(pod, pod.trainer, "/stoker/node/train/data");
    EXPECT_EQ(owner.driver, "csi.stoker.dev");
    EXPECT_FALSE(owner.read_only);
    EXPECT_TRUE(data.read_only);
    TextMap attributes = {
        {"pool", "nvme"},
        {"namespace", "team"},
        {"uid", "uid-imagenet"},
        {"dataset", "imagenet"},
        {"view", "owner"}};
    EXPECT_EQ(owner.attributes, attributes);
    attributes["view"] = "data";
    EXPECT_EQ(data.attributes, attributes);
    EXPECT_EQ(find_mount(pod.trainer, "/stoker/node/train"), nullptr);
    EXPECT_FALSE(find_mount(pod.init_containers[0], "/stoker/run")->read_only);
    EXPECT_EQ(find_mount(pod.trainer, "/stoker/token"), nullptr);
}

TEST(BuildPod, PassesCredentialsBySecretReferenceOnly) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].source.secret_ref = "keys";
    const PodManifest pod = pod_of(view);
    EXPECT_EQ(
        env(pod.trainer, "AWS_ACCESS_KEY_ID"),
        R"({"secretKeyRef":{"key":"AWS_ACCESS_KEY_ID","name":"keys"}})");
    EXPECT_NE(env(pod.trainer, "AWS_SESSION_TOKEN").find(R"("optional":true)"), std::string::npos);
    ASSERT_NE(find_mount(pod.init_containers[0], "/stoker/credentials/train"), nullptr);
    EXPECT_NE(
        env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG")
            .find(R"("credentialsDirectory":"/stoker/credentials/train")"),
        std::string::npos);
    EXPECT_EQ(env(pod.trainer, "STOKER_DATASETS").find("credentials"), std::string::npos);
}

TEST(BuildPod, ForeignDatasetUsesItsDirectoryAndTheJobsSecret) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].ns = "data";
    view.datasets.datasets[0].source.secret_ref = "keys";
    const PodManifest pod = pod_of(view);
    const CsiVolume shared = view_at(pod, pod.trainer, "/stoker/node/train/data");
    EXPECT_EQ(shared.attributes.at("namespace"), "data");
    EXPECT_EQ(shared.attributes.at("view"), "shared");
    EXPECT_NE(env(pod.trainer, "STOKER_DATASETS").find(R"("guest":true)"), std::string::npos)
        << "the client copies what another namespace's files hold";
    EXPECT_EQ(env(pod_of(make_view()).trainer, "STOKER_DATASETS").find("guest"), std::string::npos);
    EXPECT_TRUE(shared.read_only);
    EXPECT_EQ(
        env(pod.trainer, "AWS_ACCESS_KEY_ID"),
        R"({"secretKeyRef":{"key":"AWS_ACCESS_KEY_ID","name":"keys","optional":true}})")
        << "the pod starts without it";
    const auto credentials = [](const PodManifest& of) {
        for (const VolumeManifest& volume : of.volumes) {
            if (const auto* secret = std::get_if<SecretVolume>(&volume.source)) {
                return *secret;
            }
        }
        return SecretVolume{};
    };
    EXPECT_EQ(credentials(pod), (SecretVolume{"keys", true}));
    view.datasets.datasets[0].ns = "team";
    EXPECT_EQ(credentials(pod_of(view)), (SecretVolume{"keys", false}));
}

TEST(BuildPod, GuestMountsOnlySamplesAndItsFolder) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].ns = "data";
    const PodManifest pod = pod_of(view);
    const ContainerManifest& sidecar = pod.init_containers[0];
    EXPECT_EQ(find_mount(sidecar, "/stoker/node/train"), nullptr);
    const CsiVolume data = view_at(pod, sidecar, "/stoker/node/train/data");
    EXPECT_EQ(data.attributes.at("view"), "shared");
    EXPECT_TRUE(data.read_only);
    const CsiVolume guest = view_at(pod, sidecar, "/stoker/node/train/guests");
    EXPECT_EQ(guest.attributes.at("view"), "guest");
    EXPECT_EQ(guest.attributes.at("namespace"), "data");
    EXPECT_TRUE(guest.read_only);
    EXPECT_TRUE(find_mount(sidecar, "/stoker/node/train/guests")->read_only);
    EXPECT_EQ(find_mount(pod.trainer, "/stoker/node/train/guests"), nullptr);
    for (const VolumeManifest& volume : pod.volumes) {
        if (const auto* view_volume = std::get_if<CsiVolume>(&volume.source)) {
            EXPECT_NE(view_volume->attributes.at("view"), "owner") << volume.name;
        }
    }
}

TEST(BuildPod, UsesNoSecretOfAnotherNamespaceIfSeveralAreNamed) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].ns = "data";
    view.datasets.datasets[0].source.secret_ref = "keys";
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].name = "val";
    view.datasets.datasets[1].source.secret_ref = "more-keys";
    EXPECT_EQ(env(pod_of(view).trainer, "AWS_ACCESS_KEY_ID"), "(absent)");
    view.datasets.datasets[1].ns = "team";
    EXPECT_NE(env(pod_of(view).trainer, "AWS_ACCESS_KEY_ID").find("more-keys"), std::string::npos);
}

TEST(BuildPod, RequiresTheSecretOfAnOwnDataset) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].ns = "data";
    view.datasets.datasets[0].source.secret_ref = "keys";
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].name = "val";
    view.datasets.datasets[1].ns = "team";
    EXPECT_EQ(env(pod_of(view).trainer, "AWS_ACCESS_KEY_ID").find("optional"), std::string::npos);
}

TEST(BuildPod, KeepsTheUsersCredentials) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].source.secret_ref = "keys";
    view.job.spec.trainer.env = {{"AWS_ACCESS_KEY_ID", "mine", {}}};
    const PodManifest pod = pod_of(view);
    EXPECT_EQ(env(pod.trainer, "AWS_ACCESS_KEY_ID"), "mine");
    EXPECT_EQ(
        std::count_if(
            pod.trainer.env.begin(),
            pod.trainer.env.end(),
            [](const EnvVar& variable) { return variable.name == "AWS_ACCESS_KEY_ID"; }),
        1);
}

TEST(BuildPod, PassesTheDatasetsToSidecarAndTrainer) {
    TrainingJobView view = make_view();
    view.settings.control_address = "stoker.system.svc:9443";
    view.settings.control_ca_pem = "PEM";
    view.datasets.datasets[0].source = {"s3://b/p", "http://h:9", "r1", {}, {}, {}};
    const PodManifest pod = pod_of(view);
    const ContainerManifest& sidecar = pod.init_containers[0];
    EXPECT_EQ(
        env(sidecar, "STOKER_SIDECAR_CONFIG"),
        R"({"control":{"endpoint":"stoker.system.svc:9443","tokenFile":"/stoker/token/token"},)"
        R"("datasets":[{"contract":"exact","directory":"/stoker/node/train","name":"train",)"
        R"("origin":{"endpoint":"http://h:9","region":"r1","uri":"s3://b/p"},"peers":true,)"
        R"("pinned":true,"reservedFree":"0.15","uid":"uid-imagenet","window":268435456}],)"
        R"("http":{"listen":"[::]:9455"},)"
        R"("job":{"trainingJob":"resnet","trainingJobUid":"uid-resnet"},)"
        R"("peers":{"listen":"[::]:7331"},)"
        R"("socket":"/stoker/run/stoker.sock","socketMode":"0666"})");
    EXPECT_EQ(env(sidecar, "STOKER_CONTROL_CA"), "PEM");
    EXPECT_EQ(env(sidecar, "POD_NAME"), R"({"fieldRef":{"fieldPath":"metadata.name"}})");
    EXPECT_EQ(env(sidecar, "POD_IP"), R"({"fieldRef":{"fieldPath":"status.podIP"}})");
    EXPECT_EQ(env(sidecar, "NODE_NAME"), R"({"fieldRef":{"fieldPath":"spec.nodeName"}})");
    EXPECT_EQ(
        env(sidecar, "ATTEMPT_UID"),
        R"({"fieldRef":{"fieldPath":"metadata.labels['batch.kubernetes.io/controller-uid']"}})");
    EXPECT_EQ(env(pod.trainer, "STOKER_SOCKET"), "/stoker/run/stoker.sock");
    EXPECT_EQ(
        env(pod.trainer, "STOKER_DATASETS"),
        R"({"train":{"contract":"exact","directory":"/stoker/node/train/data","endpoint":"http://h:9",)"
        R"("region":"r1","uri":"s3://b/p"}})");
    EXPECT_EQ(env(pod.trainer, "STOKER_ATTEMPT"), "1");
    EXPECT_EQ(env(pod.trainer, "STOKER_JOB"), "uid-resnet");
}

TEST(BuildPod, PassesTheNumberOfEpochsToTheTrainer) {
    TrainingJobView view = make_view();
    EXPECT_FALSE(find_env(pod_of(view).trainer, "STOKER_EPOCHS").has_value());
    view.job.spec.trainer.epochs = 90;
    EXPECT_EQ(env(pod_of(view).trainer, "STOKER_EPOCHS"), "90");
}

TEST(BuildPod, MountsADirectoryOriginReadOnlyForBoth) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].source = {
        "file:///imagenet/train", "", "", {}, {}, SourceVolume{{}, "/nfs"}};
    const PodManifest pod = pod_of(view);
    for (const ContainerManifest* container : {&pod.init_containers[0], &pod.trainer}) {
        const MountManifest* mount = find_mount(*container, "/stoker/origin/train");
        ASSERT_NE(mount, nullptr);
        EXPECT_TRUE(mount->read_only);
    }
    EXPECT_NE(
        env(pod.trainer, "STOKER_DATASETS").find("file:///stoker/origin/train/imagenet/train"),
        std::string::npos);
}

TEST(BuildPod, EscapesDollarSignsThatTheKubeletWouldExpandInOriginUris) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].source.storage_uri = "s3://b/$(HOME)/$$";
    const PodManifest pod = pod_of(view);
    const std::string escaped = "s3://b/$$(HOME)/$$$$";
    EXPECT_NE(env(pod.trainer, "STOKER_DATASETS").find(escaped), std::string::npos);
    EXPECT_NE(
        env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG").find(escaped), std::string::npos);
}

TEST(BuildPod, OmitsSidecarAndNodeDirectoryWithoutAPool) {
    TrainingJobView view = make_view();
    view.pool = ResolvedPool{};
    const PodManifest pod = pod_of(view);
    EXPECT_TRUE(pod.init_containers.empty());
    EXPECT_EQ(volume_names(pod), std::set<std::string>{"stoker-shm"});
    EXPECT_EQ(env(pod.trainer, "STOKER_SOCKET"), "(absent)");
    EXPECT_EQ(
        env(pod.trainer, "STOKER_DATASETS"),
        R"({"train":{"contract":"exact","uri":"s3://imagenet"}})");
}

TEST(BuildPod, HidesTheServiceAccountTokenFromTheSidecar) {
    TrainingJob job = make_training_job();
    job.spec.pod_template.automount_service_account_token = true;
    const PodManifest pod = pod_of(make_view(job));
    EXPECT_TRUE(pod.automount_service_account_token);
    const std::string path = "/var/run/secrets/kubernetes.io/serviceaccount";
    ASSERT_NE(find_mount(pod.init_containers[0], path), nullptr);
    EXPECT_EQ(find_mount(pod.trainer, path), nullptr);
}

TEST(BuildPod, AddsSharedMemoryUnlessTheUserDid) {
    EXPECT_NE(find_mount(pod_of(make_view()).trainer, "/dev/shm"), nullptr);
    TrainingJob job = make_training_job();
    job.spec.pod_template.trainer.volume_mount_paths = {"/dev/shm"};
    const PodManifest pod = pod_of(make_view(job));
    EXPECT_EQ(find_mount(pod.trainer, "/dev/shm"), nullptr);
    EXPECT_FALSE(volume_names(pod).contains("stoker-shm"));
}

TEST(BuildPod, MergesTheUsersTemplate) {
    TrainingJob job = make_training_job();
    PodOverlay& overlay = job.spec.pod_template;
    overlay.labels = {{"team", "vision"}};
    overlay.annotations = {{"note", "x"}};
    overlay.service_account_name = "trainer";
    overlay.node_selector = {{"gpu", "a100"}};
    overlay.tolerations = {Json::parse("{}").value()};
    overlay.priority_class_name = "high";
    overlay.termination_grace_period_seconds = 300;
    overlay.volumes = {Json::parse(R"({"name":"c"})").value()};
    overlay.trainer.volume_mounts = {Json::parse(R"({"name":"c","mountPath":"/c"})").value()};
    overlay.trainer.working_dir = "/app";
    overlay.host_ipc = true;
    const PodManifest pod = pod_of(make_view(job));
    EXPECT_EQ(pod.labels.at("team"), "vision");
    EXPECT_EQ(pod.annotations.at("note"), "x");
    EXPECT_EQ(pod.service_account_name, "trainer");
    EXPECT_EQ(pod.node_selector.at("gpu"), "a100");
    EXPECT_EQ(pod.tolerations.size(), 1U);
    EXPECT_EQ(pod.priority_class_name, "high");
    EXPECT_EQ(pod.termination_grace_period_seconds, 300);
    EXPECT_EQ(pod.user_volumes.size(), 1U);
    EXPECT_EQ(pod.trainer.user_mounts.size(), 1U);
    EXPECT_EQ(pod.trainer.working_dir, "/app");
    EXPECT_TRUE(pod.host_ipc);
}

TEST(RendezvousEnv, SetsTheVariablesOfTorchrunAndOfTorchDistributed) {
    TrainingJobView view = make_view();
    const ContainerManifest trainer = pod_of(view).trainer;
    const std::string index =
        R"({"fieldRef":{"fieldPath":"metadata.annotations['batch.kubernetes.io/job-completion-index']"}})";
    EXPECT_EQ(env(trainer, "PET_NNODES"), "2");
    EXPECT_EQ(env(trainer, "PET_NPROC_PER_NODE"), "1");
    EXPECT_EQ(env(trainer, "PET_NODE_RANK"), index);
    EXPECT_EQ(env(trainer, "PET_MASTER_ADDR"), "resnet-a1-0.resnet-ranks");
    EXPECT_EQ(env(trainer, "PET_MASTER_PORT"), "29500");
    EXPECT_EQ(env(trainer, "MASTER_ADDR"), "resnet-a1-0.resnet-ranks");
    EXPECT_EQ(env(trainer, "MASTER_PORT"), "29500");
    EXPECT_EQ(env(trainer, "WORLD_SIZE"), "2");
    EXPECT_EQ(env(trainer, "RANK"), index);
    EXPECT_EQ(env(trainer, "PYTHONUNBUFFERED"), "1");
}

TEST(RendezvousEnv, LeavesProcessRanksToTorchrun) {
    TrainingJobView view = make_view();
    view.job.spec.trainer.processes_per_node = "8";
    const ContainerManifest trainer = pod_of(view).trainer;
    EXPECT_EQ(env(trainer, "PET_NPROC_PER_NODE"), "8");
    EXPECT_EQ(env(trainer, "RANK"), "(absent)");
    EXPECT_EQ(env(trainer, "WORLD_SIZE"), "(absent)");
}

TEST(RendezvousEnv, KeepsTheUsersVariables) {
    TrainingJobView view = make_view();
    view.job.spec.trainer.env = {{"MASTER_PORT", "1234", {}}, {"MINE", "1", {}}};
    const ContainerManifest trainer = pod_of(view).trainer;
    EXPECT_EQ(env(trainer, "MASTER_PORT"), "1234");
    EXPECT_EQ(env(trainer, "PET_MASTER_PORT"), "29500");
    EXPECT_EQ(env(trainer, "MINE"), "1");
    std::set<std::string> names;
    for (const EnvVar& variable : trainer.env) {
        EXPECT_TRUE(names.insert(variable.name).second) << variable.name << " is a duplicate";
    }
}

TEST(BuildPod, MountsTheCertificatesOfAnOriginIntoBothContainers) {
    TrainingJobView view = make_view();
    view.datasets.datasets[0].source.ca_bundle = CaBundle{BundleKind::kConfigMap, "ca", "root.pem"};
    const PodManifest pod = pod_of(view);
    for (const ContainerManifest* container : {&pod.init_containers[0], &pod.trainer}) {
        const MountManifest* mount = find_mount(*container, "/stoker/ca/train");
        ASSERT_NE(mount, nullptr) << container->name;
        EXPECT_EQ(mount->volume, "stoker-ca-0");
        EXPECT_TRUE(mount->read_only);
    }
    EXPECT_TRUE(volume_names(pod).contains("stoker-ca-0"));
    const std::string file = R"("caFile":"/stoker/ca/train/root.pem")";
    EXPECT_NE(env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG").find(file), std::string::npos);
    EXPECT_NE(env(pod.trainer, "STOKER_DATASETS").find(file), std::string::npos);
}

TEST(BuildPod, BothContainersLearnTheFormat) {
    TrainingJobView view = make_view();
    const PodManifest loose = pod_of(view);
    EXPECT_EQ(
        env(loose.init_containers[0], "STOKER_SIDECAR_CONFIG").find("format"), std::string::npos);
    view.datasets.datasets[0].format = DatasetFormat::kRecords;
    view.datasets.datasets[0].records = DatasetRecords{3073, ""};
    const PodManifest pod = pod_of(view);
    for (const std::string& settings :
         {env(pod.init_containers[0], "STOKER_SIDECAR_CONFIG"),
          env(pod.trainer, "STOKER_DATASETS")}) {
        EXPECT_THAT(settings, testing::HasSubstr(R"("format":"records")"));
        EXPECT_THAT(settings, testing::HasSubstr(R"("records":{"bytes":3073})"));
    }
}

TEST(BuildPod, TheSidecarAndTheEndpointLearnTheSizeOfBlocks) {
    TrainingJobView view = make_view();
    ResolvedDataset& dataset = view.datasets.datasets[0];
    dataset.format = DatasetFormat::kBlocks;
    dataset.block_size = mib(4);
    dataset.access = DatasetAccess::kS3;
    const PodManifest pod = pod_of(view);
    for (const ContainerManifest& container : {pod.init_containers[0], pod.init_containers[1]}) {
        const std::string config = env(container, "STOKER_SIDECAR_CONFIG");
        EXPECT_THAT(config, testing::HasSubstr(R"("format":"blocks")"));
        EXPECT_THAT(config, testing::HasSubstr(R"("blockSize":4194304)"));
    }
    EXPECT_THAT(env(pod.trainer, "STOKER_DATASETS"), testing::HasSubstr(R"("format":"blocks")"));
}

TEST(BuildPod, CopiesOnlyProxyVariablesToTheSidecar) {
    TrainingJob job = make_training_job();
    job.spec.trainer.env = {
        {"HTTPS_PROXY", "http://proxy:3128", {}},
        {"NO_PROXY", ".svc", {}},
        {"https_proxy", "http://proxy:3128", {}},
        {"TOKEN", "secret", {}}};
    const PodManifest pod = pod_of(make_view(job));
    const ContainerManifest& sidecar = pod.init_containers[0];
    EXPECT_EQ(env(sidecar, "HTTPS_PROXY"), "http://proxy:3128");
    EXPECT_EQ(env(sidecar, "NO_PROXY"), ".svc");
    EXPECT_EQ(env(sidecar, "https_proxy"), "(absent)") << "gRPC would take it";
    EXPECT_EQ(env(sidecar, "TOKEN"), "(absent)");
}

TEST(BuildPod, TrainersProxyOverridesTheOperators) {
    TrainingJob job = make_training_job();
    job.spec.trainer.env = {{"HTTPS_PROXY", "http://users:3128", {}}};
    TrainingJobView view = make_view(job);
    view.settings.sidecar_proxy = {{"HTTPS_PROXY", "http://operators:3128"}, {"NO_PROXY", ".svc"}};
    const PodManifest pod = pod_of(view);
    const ContainerManifest& sidecar = pod.init_containers[0];
    EXPECT_EQ(env(sidecar, "HTTPS_PROXY"), "http://users:3128");
    EXPECT_EQ(env(sidecar, "NO_PROXY"), ".svc");
    EXPECT_EQ(env(pod.trainer, "NO_PROXY"), "(absent)")
        << "the trainer's environment is the user's";
}

}  // namespace
}  // namespace stoker::control
